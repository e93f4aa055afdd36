#include "c/arguments.h"

namespace fovea::c {

std::string_view text_of(const char* text, size_t size, const char* name) {
  if (size == 0) return {};
  required(text, name);
  if (size == FOVEA_NUL_TERMINATED) return text;
  check(size <= PTRDIFF_MAX, "{}: {} bytes; expected a possible size", name, size);
  return {text, size};
}

void check_size(size_t size) {
  constexpr size_t kMost = 4096;  // far above any struct, to catch a size that was not set
  check(size >= sizeof(size_t) && size <= kMost,
        "size: {}; expected the size of the struct, as set by its _init function", size);
}

}  // namespace fovea::c
