#include "records/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "fovea/text/text_lines.h"

namespace fovea::text {
namespace {

// Returns a column of a .tsv file without the quotes around it; `all`: also if none is inside.
std::string unquoted(std::string_view column, bool all) {
  if (column.size() < 2 || column.front() != '"' || column.back() != '"')
    return std::string(column);
  const std::string_view inside = column.substr(1, column.size() - 2);
  std::string text;
  for (size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '"') {
      ++i;  // the second of two quotes
      if (i == inside.size() || inside[i] != '"') return std::string(column);
    }
    text += inside[i];
  }
  return all || text.size() < inside.size() ? text : std::string(column);
}

// Reads one row after the other.
class RowReader {
 public:
  // `quoted`: all columns of a .tsv file may be in quotes.
  RowReader(std::string_view text, const std::string& path, char separator, bool quoted)
      : rest_(text), path_(path), separator_(separator), quoted_(quoted) {}

  // Returns the next row; unset at the end. A blank line is a row of one blank column.
  std::optional<Table::Row> next() {
    if (rest_.empty()) return std::nullopt;
    Table::Row row{{}, fmt::format("{}:{}", path_, line_)};
    separator_ == '\t' ? split_line(row) : split_record(row);
    return row;
  }

 private:
  std::string_view take_line() {
    const size_t end = std::min(rest_.find('\n'), rest_.size());
    std::string_view line = rest_.substr(0, end);
    rest_.remove_prefix(std::min(end + 1, rest_.size()));
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    return line;
  }

  void split_line(Table::Row& row) {
    const std::string_view line = take_line();
    for (size_t begin = 0, end = 0; begin <= line.size(); begin = end + 1) {
      end = std::min(line.find('\t', begin), line.size());
      row.columns.push_back(unquoted(line.substr(begin, end - begin), quoted_));
    }
  }

  // Divides a line; a quoted column may continue in the next ones.
  void split_record(Table::Row& row) {
    for (std::string_view line = take_line();;) {
      std::string column;
      if (line.starts_with('"')) {
        column = quoted(line, row.location);
      } else {
        column = line.substr(0, line.find(separator_));
        line.remove_prefix(column.size());
      }
      row.columns.push_back(std::move(column));
      if (line.empty()) return;
      if (line.front() != separator_)
        fail(ErrorKind::BadFile, "{}: has text after a quote that ends; expected a {}",
             row.location, separator_ == ';' ? "semicolon" : "comma");
      line.remove_prefix(1);
    }
  }

  // Returns the content of the quotes with which the line begins, and removes them from it.
  std::string quoted(std::string_view& line, const std::string& location) {
    std::string column;
    line.remove_prefix(1);
    for (;;) {
      const size_t quote = line.find('"');
      column += line.substr(0, quote);
      if (quote == line.npos) {
        if (rest_.empty())
          fail(ErrorKind::BadFile, "{}: has a quote that does not end; expected another one",
               location);
        column += '\n';
        line = take_line();
        continue;
      }
      line.remove_prefix(quote + 1);
      if (!line.starts_with('"')) return column;
      column += '"';
      line.remove_prefix(1);
    }
  }

  std::string_view rest_;
  const std::string& path_;
  char separator_;
  bool quoted_;
  int64_t line_ = 1;
};

bool blank_row(const Table::Row& row) {
  return row.columns.size() == 1 && is_blank(row.columns[0]);
}

std::optional<Table::Row> first_row(const std::string& text, const std::string& path,
                                    char separator) {
  RowReader reader(text, path, separator, true);
  auto row = reader.next();
  while (row && blank_row(*row)) row = reader.next();
  return row;
}

std::vector<std::string> as_names(std::vector<std::string> columns) {
  for (std::string& column : columns) {
    column.erase(0, column.find_first_not_of(' '));
    column.erase(column.find_last_not_of(' ') + 1);
    for (char& c : column)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return columns;
}

// Returns the first line that is not blank and no comment.
std::string_view first_line(std::string_view text) {
  for (size_t begin = 0, end = 0; begin < text.size(); begin = end + 1) {
    end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = text.substr(begin, end - begin);
    if (!is_blank(line) && !line.starts_with('#')) return line;
  }
  return {};
}

char separator_of(const std::string& text, const std::string& path, const AreNames& are_names) {
  const std::string_view first = first_line(text);
  const std::string_view name = without_compression(path);
  const bool csv = name.ends_with(".csv");
  if (name.ends_with(".tsv") || (!csv && first.find('\t') != first.npos)) return '\t';
  char found = ',';
  size_t columns = 1;
  for (const char separator : {',', ';', '\t'}) {
    if (first.find(separator) == first.npos) continue;
    std::optional<Table::Row> row;
    try {
      row = first_row(text, path, separator);
    } catch (const Error&) {  // the quotes suit another separator
      continue;
    }
    if (row && are_names(as_names(row->columns))) return separator;
    if (row && columns == 1 && row->columns.size() > 1) {
      found = separator;
      columns = row->columns.size();
    }
  }
  return found;
}

}  // namespace

std::optional<size_t> Table::column(std::initializer_list<const char*> of) const {
  for (const char* name : of)
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) return i;
  return std::nullopt;
}

bool has_name(const std::vector<std::string>& columns, std::initializer_list<const char*> names) {
  return std::any_of(columns.begin(), columns.end(), [&](const std::string& column) {
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return column == name; });
  });
}

Table read_table(const std::string& path, const AreNames& are_names) {
  const std::string text = read_text(path);
  Table table;
  table.separator = separator_of(text, path, are_names);
  const auto first_columns = first_row(text, path, table.separator);
  const bool named = first_columns && are_names(as_names(first_columns->columns));
  RowReader reader(text, path, table.separator, named && text.starts_with('"'));
  for (bool first = true; auto row = reader.next();) {
    if (blank_row(*row)) {
      ++table.blank;
      continue;
    }
    if (std::exchange(first, false) && named) {
      table.names = as_names(row->columns);
      continue;
    }
    if (!table.names.empty() && row->columns.size() != table.names.size())
      fail(ErrorKind::BadFile, "{}: has {} column{}; expected {}, as in the first line",
           row->location, row->columns.size(), row->columns.size() == 1 ? "" : "s",
           table.names.size());
    table.rows.push_back(std::move(*row));
  }
  return table;
}

std::optional<double> finite_number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

}  // namespace fovea::text
