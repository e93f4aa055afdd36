#include "fovea/core/excerpt.h"

namespace fovea {

std::string excerpt(std::string_view text, size_t most) {
  size_t end = text.size();
  if (end > most) {
    const auto continues = [&](size_t at) {
      return (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80;
    };
    // A UTF-8 character has at most three bytes after the first.
    end = most;
    for (int i = 0; i < 3 && end > 0 && continues(end); ++i) --end;
  }
  std::string shown(text.substr(0, end));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return end < text.size() ? shown + "..." : shown;
}

}  // namespace fovea
