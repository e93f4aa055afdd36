#include "data/lines.h"

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "base/hash.h"
#include "data/corpus.h"
#include "data/file_reader.h"

namespace fovea {
namespace {

void split_columns(const std::string& path, const std::vector<std::string>& lines,
                   TextPairs& pairs) {
  for (size_t i = 0; i < lines.size(); ++i) {
    const auto tabs = std::count(lines[i].begin(), lines[i].end(), '\t');
    if (lines[i].empty()) {
      ++pairs.empty;
      continue;
    }
    if (tabs != 1) {
      fail(ErrorKind::BadFile,
           "{}:{}: has {} column{}; expected 2: source and target, separated by a tab", path, i + 1,
           tabs + 1, tabs == 0 ? "" : "s");
    }
    const size_t tab = lines[i].find('\t');
    pairs.sources.push_back(lines[i].substr(0, tab));
    pairs.targets.push_back(lines[i].substr(tab + 1));
  }
}

void drop_empty(TextPairs& pairs) {
  size_t kept = 0;
  for (size_t i = 0; i < pairs.sources.size(); ++i) {
    if (is_blank(pairs.sources[i]) || is_blank(pairs.targets[i])) continue;
    if (kept != i) {
      pairs.sources[kept] = std::move(pairs.sources[i]);
      pairs.targets[kept] = std::move(pairs.targets[i]);
    }
    ++kept;
  }
  pairs.empty += static_cast<int64_t>(pairs.sources.size() - kept);
  pairs.sources.resize(kept);
  pairs.targets.resize(kept);
}

uint64_t hash_of(const TextPairs& pairs) {
  Hasher hasher;
  for (const auto* side : {&pairs.sources, &pairs.targets}) {
    for (const std::string& text : *side) {
      hasher.add(text);
      hasher.add("\n");
    }
  }
  return hasher.hash();
}

constexpr const char* kBlanks = " \t\r\n";

// Returns the place after the JSON object that begins at `begin`; npos if it does not end.
size_t end_of_object(std::string_view text, size_t begin) {
  int64_t depth = 0;
  bool quoted = false;
  for (size_t i = begin; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '{') ++depth;
    if (c == '}' && --depth == 0) return i + 1;
  }
  return text.npos;
}

// Returns the place of the first object if a file is one array of objects; otherwise npos.
size_t first_of_array(std::string_view text) {
  const size_t open = text.find_first_not_of(kBlanks);
  if (open == text.npos || text[open] != '[') return text.npos;
  const size_t first = text.find_first_not_of(kBlanks, open + 1);
  return first != text.npos && text[first] == '{' ? first : text.npos;
}

void each_object(const std::string& path, const std::string& content, size_t first,
                 const JsonUse& use) {
  int64_t line = 1;
  auto place = [&, counted = size_t{0}](size_t at) mutable {
    const char* const text = content.data();
    line += std::count(text + counted, text + at, '\n');
    counted = at;
    return fmt::format("{}:{}", path, line);
  };
  for (size_t at = first;;) {
    const std::string name = place(at);
    const size_t end = end_of_object(content, at);
    if (end == content.npos)
      fail(ErrorKind::BadFile, "{}: is an object that does not end; expected a closing brace",
           name);
    use(content.substr(at, end - at), name);
    const size_t mark = std::min(content.find_first_not_of(kBlanks, end), content.size());
    at = std::min(content.find_first_not_of(kBlanks, mark + 1), content.size());
    if (content[mark] == ']' && at == content.size()) return;
    if (content[mark] != ',' || content[at] != '{')
      fail(ErrorKind::BadFile,
           "{}: is not followed by an object or the end of the array; expected one of them", name);
  }
}

}  // namespace

std::vector<std::string> split_row(const std::string& line, char separator,
                                   const std::string& place) {
  std::vector<std::string> columns(1);
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    const bool quote = separator == ',' && line[i] == '"';
    if (quote && quoted && i + 1 < line.size() && line[i + 1] == '"') {
      columns.back() += line[++i];
    } else if (quote && (quoted || columns.back().empty())) {
      quoted = !quoted;
    } else if (line[i] == separator && !quoted) {
      columns.emplace_back();
    } else {
      columns.back() += line[i];
    }
  }
  if (quoted)
    fail(ErrorKind::BadFile, "{}: has a quote that does not end; expected it in the same line",
         place);
  return columns;
}

void finish(TextPairs& pairs) {
  drop_empty(pairs);
  pairs.hash = hash_of(pairs);
}

void shorten(TextPairs& pairs, int64_t most) {
  const size_t size = std::min(pairs.sources.size(), static_cast<size_t>(most));
  pairs.sources.resize(size);
  pairs.targets.resize(size);
}

std::vector<std::string> read_lines(const std::string& path) {
  const auto refuse = [&](const char* what) {
    fail(ErrorKind::BadFile, "{}: is {}; expected a text file with one text per line", path, what);
  };
  if (is_folder(path)) refuse("a folder");
  Corpus corpus({path});
  if (corpus.separates_documents()) refuse("JSON");
  std::vector<std::string> lines(1);
  corpus.read([&](const Corpus::Piece& piece) {
    for (size_t begin = 0, end = 0; begin <= piece.text.size(); begin = end + 1) {
      end = std::min(piece.text.find('\n', begin), piece.text.size());
      lines.back() += piece.text.substr(begin, end - begin);
      if (end < piece.text.size()) lines.emplace_back();
    }
  });
  if (lines.back().empty()) lines.pop_back();  // after the end of the last line
  for (std::string& line : lines)
    if (line.ends_with('\r')) line.pop_back();
  return lines;
}

void each_json_line(const std::string& path, const JsonUse& use) {
  const std::string content = read_file(path);
  if (const size_t first = first_of_array(content); first != content.npos)
    return each_object(path, content, first, use);
  int64_t number = 0;
  for (size_t begin = 0, end = 0; begin < content.size(); begin = end + 1) {
    end = std::min(content.find('\n', begin), content.size());
    const std::string line = content.substr(begin, end - begin);
    ++number;
    if (!is_blank(line)) use(line, fmt::format("{}:{}", path, number));
  }
}

std::string first_json_line(const std::string& path) {
  FileReader reader(path, static_cast<int64_t>(MappedFile(path).size()));
  std::string_view block = reader.next();
  if (const size_t first = first_of_array(block); first != block.npos)
    return std::string(block.substr(first, end_of_object(block, first) - first));
  while (!block.empty()) {
    const size_t end = block.find('\n');
    const std::string_view line = block.substr(0, end);
    if (!is_blank(line)) return std::string(line);
    if (end == block.npos) break;
    block.remove_prefix(end + 1);
  }
  return {};
}

TextPairs read_pairs(const std::vector<std::string>& files, const char* field) {
  check_field(files.size() == 1 || files.size() == 2, field,
              "{} files; expected two whose lines correspond, or one with a tab in each line",
              files.size());
  TextPairs pairs;
  if (files.size() == 1) {
    split_columns(files[0], read_lines(files[0]), pairs);
  } else {
    pairs.sources = read_lines(files[0]);
    pairs.targets = read_lines(files[1]);
    if (pairs.sources.size() != pairs.targets.size()) {
      fail(ErrorKind::BadFile, "{}: has {} lines, {} has {}; expected equal numbers of lines",
           files[1], pairs.targets.size(), files[0], pairs.sources.size());
    }
  }
  finish(pairs);
  if (pairs.sources.empty())
    fail(ErrorKind::BadFile, "{}: contains no pair of texts; expected at least one", files[0]);
  return pairs;
}

}  // namespace fovea
