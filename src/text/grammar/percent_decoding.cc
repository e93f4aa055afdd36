#include "grammar/percent_decoding.h"

#include <charconv>
#include <cstddef>

namespace fovea::text {

std::string percent_decoded(const std::string& text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    const char* const digits = text.data() + i + 1;
    const bool escaped = text[i] == '%' && i + 2 < text.size() &&
                         std::from_chars(digits, digits + 2, value, 16).ptr == digits + 2;
    out += escaped ? static_cast<char>(value) : text[i];
    if (escaped) i += 2;
  }
  return out;
}

}  // namespace fovea::text
