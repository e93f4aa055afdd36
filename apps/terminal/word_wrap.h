#pragma once

#include <string>
#include <string_view>

namespace fovea::cli {

// Breaks the lines of a text between words while it arrives in pieces. A word that reaches the edge
// of the terminal is erased and written again on the next line.
class WordWrap {
 public:
  explicit WordWrap(int terminal_width);
  // Returns what to write to the terminal for a piece of UTF-8 text without control characters
  // other than tabs and newlines.
  std::string operator()(std::string_view piece);
  bool at_line_start() const { return column_ == 0; }

 private:
  void add(std::string_view character, int width, std::string& out);
  void break_line(std::string& out);

  int width_;
  int column_ = 0;
  std::string word_;  // the last word, as far as it arrived
  int word_columns_ = 0;
};

}  // namespace fovea::cli
