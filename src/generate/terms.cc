#include "generate/terms.h"

#include <algorithm>

#include "base/error.h"
#include "data/table.h"

namespace fovea {
namespace {

bool in_word(char c) {
  return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

// Calls found(begin) for each place of `term` in `line` that is not within a longer word.
template <class Found>
void each_place(const std::string& line, const std::string& term, const Found& found) {
  for (size_t at = line.find(term); at != std::string::npos; at = line.find(term, at + 1)) {
    const size_t end = at + term.size();
    const bool begins = at == 0 || !in_word(line[at - 1]) || !in_word(term.front());
    const bool ends = end == line.size() || !in_word(line[end]) || !in_word(term.back());
    if (begins && ends) found(at);
  }
}

}  // namespace

Terms::Terms(const std::string& path, const Tokenizer& target) {
  const auto are_names = [](const std::vector<std::string>& columns) {
    return has_name(columns, {"source"}) && has_name(columns, {"target"});
  };
  const Table table = read_table(path, are_names);
  const size_t from = table.column({"source"}).value_or(0),
               to = table.column({"target"}).value_or(1);
  for (const Table::Row& row : table.rows) {
    const std::vector<std::string>& columns = row.columns;
    if (columns[0].starts_with('#')) continue;
    const bool two = columns.size() == 2 || !table.names.empty();
    if (!two || columns[from].empty() || columns[to].empty())
      fail(ErrorKind::BadFile, "{}: expected source term<TAB>target term", row.place);
    const std::string& term = columns[to];
    if (!target.unknown(term).empty())
      fail(ErrorKind::BadFile,
           "{}: \"{}\" has characters that the model cannot write; expected others", row.place,
           term);
    terms_.emplace_back(columns[from], term);
  }
}

std::vector<std::string> Terms::targets_in(const std::string& line) const {
  struct Use {
    size_t begin, end, term;
  };
  std::vector<Use> uses;
  for (size_t i = 0; i < terms_.size(); ++i) {
    const std::string& term = terms_[i].first;
    each_place(line, term, [&](size_t at) { uses.push_back({at, at + term.size(), i}); });
  }
  std::vector<std::string> targets;
  for (size_t i = 0; i < terms_.size(); ++i) {
    const bool used = std::any_of(uses.begin(), uses.end(), [&](const Use& use) {
      return use.term == i && std::none_of(uses.begin(), uses.end(), [&](const Use& other) {
               return other.begin <= use.begin && other.end >= use.end &&
                      other.end - other.begin > use.end - use.begin;
             });
    });
    const std::string& target = terms_[i].second;
    if (used && std::find(targets.begin(), targets.end(), target) == targets.end())
      targets.push_back(target);
  }
  return targets;
}

}  // namespace fovea
