#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// Returns the lines of a text file without line ends ("\n" or "\r\n"). Throws BadFile if the path
// is JSON or a folder of several files, or if the file is empty, binary, compressed or not UTF-8.
std::vector<std::string> read_lines(const std::string& path);

// Receives a line, or an object of an array, and its name "path:line".
using JsonUse = std::function<void(const std::string& line, const std::string& name)>;

// Calls `use` with each line of a file that is not blank or, if the file is one array of objects,
// with each object. Throws BadFile if the file cannot be read, or if the array does not end.
void each_json_line(const std::string& path, const JsonUse& use);

// Returns the first of them, cut at the end of the first block that reaches it; empty if all lines
// are blank. Throws BadFile if the file cannot be read.
std::string first_json_line(const std::string& path);

// Splits a line of a table. In .csv, a column in quotes may hold commas and, doubled, quotes.
// Throws BadFile, naming `place`, if a quote does not end.
std::vector<std::string> split_row(const std::string& line, char separator,
                                   const std::string& place);

inline bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == text.npos;
}

// Source texts and their targets, such as translations.
struct TextPairs {
  std::vector<std::string> sources, targets;  // of equal size
  int64_t empty = 0;                          // number of skipped pairs, in which a side is blank
  uint64_t hash = 0;                          // hash of the content
};

// Drops the pairs of which a side is blank, and sets the hash.
void finish(TextPairs& pairs);
void shorten(TextPairs& pairs, int64_t most);  // keeps the first ones

// Reads two files whose lines correspond, or one file of lines "source<TAB>target". Throws
// InvalidArgument, naming `field`, if there are not one or two files. Throws BadFile if the files
// differ in their number of lines, a line does not have two columns, or there is no pair.
TextPairs read_pairs(const std::vector<std::string>& files, const char* field);

}  // namespace fovea
