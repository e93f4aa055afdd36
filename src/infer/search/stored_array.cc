#include "search/stored_array.h"

#include <algorithm>

namespace fovea::infer {

StoredArray<uint8_t> stored_text(std::string_view text) {
  StoredArray<uint8_t> bytes(empty({std::ssize(text)}, DType::u8));
  std::ranges::copy(text, bytes.row(0));
  return bytes;
}

std::string_view text_of(const StoredArray<uint8_t>& bytes) {
  return {reinterpret_cast<const char*>(bytes.all().data()), bytes.all().size()};
}

std::vector<std::string> lines_in(const StoredArray<uint8_t>& bytes) {
  const std::string_view text = text_of(bytes);
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace fovea::infer
