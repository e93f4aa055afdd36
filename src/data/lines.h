#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Returns the lines of a text file without line ends ("\n" or "\r\n"). Throws BadFile, with
// file:line:byte, if the file is empty, binary, compressed or not UTF-8.
std::vector<std::string> read_lines(const std::string& path);

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == text.npos;
}

// Texts and their translations.
struct TextPairs {
  std::vector<std::string> sources, targets;  // of equal size
  int64_t empty = 0;                          // skipped pairs, in which one side is empty
  uint64_t hash = 0;                          // hash of the content
};

// Reads two files whose lines correspond, or one file of lines "source<TAB>target". Throws BadFile
// if the files differ in their number of lines, or a line does not have two columns.
TextPairs read_pairs(const std::vector<std::string>& files, const char* field);

}  // namespace fovea
