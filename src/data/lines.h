#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// The lines of a text file without their ends ("\n" or "\r\n"). BadFile, with file:line:byte, for
// what Corpus refuses: no UTF-8, binary, compressed, empty.
std::vector<std::string> read_lines(const std::string& path);

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == text.npos;
}

// Texts that stand beside their translations.
struct TextPairs {
  std::vector<std::string> sources, targets;  // equally many
  int64_t empty = 0;                          // pairs that were left out, as one side says nothing
  uint64_t hash = 0;                          // of the content
};

// Two files whose lines correspond, or one file of lines "source<TAB>target". BadFile where the
// files differ in their number of lines, or a line has another number of columns.
TextPairs read_pairs(const std::vector<std::string>& files, const std::string& option);

}  // namespace fovea
