#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

namespace fovea::text {

// A text file of rows and columns.
//   .csv: columns separated by commas, as in RFC 4180: a column that begins with a quote ends with
//     the next single quote and may contain commas, ends of lines and, doubled, quotes. If the
//     first row has names or columns only when it is divided at semicolons (as by some versions of
//     Excel) or at tabs, these separate the columns.
//   .tsv: columns separated by tabs. A row is a line. A quote is a character like any other, since
//     most programs write it so. Only a column that begins and ends with a quote is read as in .csv
//     if the quotes inside are doubled, or if the names in the first row are in quotes too.
//   others: like .tsv if the first line (of those that do not begin with #) has a tab, else like
//     .csv.
// "\r\n" in a quoted column becomes "\n". Blank lines are skipped.
struct Table {
  struct Row {
    std::vector<std::string> columns;
    std::string location;  // "path:line", of its first line
  };
  char separator = ',';
  std::vector<std::string> names;  // of the columns, in lower case; empty: the file has none
  std::vector<Row> rows;
  int64_t blank = 0;  // number of blank lines

  // Returns the column that has the first of these names that any has.
  std::optional<size_t> column(std::initializer_list<const char*> of) const;
};

// Returns whether the columns of the first row, in lower case and without spaces around them, are
// names.
using AreNames = std::function<bool(const std::vector<std::string>& columns)>;

// Throws BadFile, naming the line, if a quote does not end or is followed by something else than
// the end of a column, if a row has another number of columns than the names, or if the file is no
// text.
Table read_table(const std::string& path, const AreNames& are_names);

// Returns whether the list has one of the names.
bool has_name(const std::vector<std::string>& columns, std::initializer_list<const char*> names);

// Returns the number that the whole text is; unset if the text is not a finite number.
std::optional<double> finite_number(const std::string& text);

}  // namespace fovea::text
