#include "terminal/word_wrap.h"

#include <fmt/format.h>

#include <algorithm>
#include <cwchar>

namespace fovea::cli {

// A terminal moves its cursor beyond the last column only when the next character arrives, so this
// column stays empty.
WordWrap::WordWrap(int terminal_width) : width_(std::max(2, terminal_width - 1)) {}

std::string WordWrap::operator()(std::string_view piece) {
  std::string out;
  std::mbstate_t state = {};
  while (!piece.empty()) {
    wchar_t character = 0;
    size_t bytes = std::mbrtowc(&character, piece.data(), piece.size(), &state);
    int width = 1;
    if (bytes == 0 || bytes > piece.size()) {  // not text in the user's encoding
      bytes = 1;
      state = {};
    } else {
      width = std::max(0, wcwidth(character));
    }
    add(piece.substr(0, bytes), width, out);
    piece.remove_prefix(bytes);
  }
  return out;
}

void WordWrap::add(std::string_view character, int width, std::string& out) {
  const bool space = character == " " || character == "\t";
  if (character == "\n" || (space && column_ + 1 > width_)) return break_line(out);
  if (column_ + width > width_) {
    if (word_columns_ < column_ && word_columns_ + width <= width_) {
      if (word_columns_ > 0) out += fmt::format("\x1b[{}D\x1b[K", word_columns_);
      out += "\n" + word_;
      column_ = word_columns_;
    } else {
      break_line(out);
    }
  }
  out += character == "\t" ? " " : character;
  column_ += width;
  word_ += character;
  word_columns_ += width;
  if (space || width > 1) {  // lines may break after a wide character, as in Chinese
    word_.clear();
    word_columns_ = 0;
  }
}

void WordWrap::break_line(std::string& out) {
  out += '\n';
  word_.clear();
  column_ = word_columns_ = 0;
}

}  // namespace fovea::cli
