#include "generate/terms.h"

#include <algorithm>

#include "base/error.h"
#include "records/table.h"
#include "unicode/unicode.h"
#include "unicode/utf8.h"

namespace fovea::infer {
namespace {

// Returns whether the character is of a word that ends where such characters end: a letter, mark or
// digit, except of scripts without spaces between words, and of Korean, whose words take particles.
bool is_of_bounded_word(char32_t c) {
  if (c == U'_') return true;
  if (!text::unicode::is(c, text::unicode::letter | text::unicode::mark | text::unicode::number))
    return false;
  return !text::unicode::is_unspaced(c) &&
         text::unicode::script(c) != text::unicode::script(U'\uAC00');
}

// Returns whether a word of one text goes on in the next one.
bool goes_on(std::string_view before, std::string_view after) {
  if (before.empty() || after.empty()) return false;
  return is_of_bounded_word(text::utf8::last(before).code_point) && begins_in_word(after);
}

}  // namespace

bool begins_in_word(std::string_view text) {
  if (text.empty()) return false;
  const text::utf8::Character first = text::utf8::first(text);
  return !first.valid || is_of_bounded_word(first.code_point);
}

size_t find_words(std::string_view line, std::string_view words, size_t from) {
  for (size_t at = line.find(words, from); at != line.npos; at = line.find(words, at + 1))
    if (!goes_on(line.substr(0, at), words) && !goes_on(words, line.substr(at + words.size())))
      return at;
  return line.npos;
}

bool ends_in_word(std::string_view text) { return goes_on(text, "a"); }

Terms::Terms(const std::string& path, const text::Tokenizer& target) {
  const auto are_names = [](const std::vector<std::string>& columns) {
    return text::has_name(columns, {"source"}) && text::has_name(columns, {"target"});
  };
  const text::Table table = text::read_table(path, are_names);
  const size_t from = table.column({"source"}).value_or(0),
               to = table.column({"target"}).value_or(1);
  for (const text::Table::Row& row : table.rows) {
    const std::vector<std::string>& columns = row.columns;
    if (columns[0].starts_with('#')) continue;
    const bool two = columns.size() == 2 || !table.names.empty();
    if (!two || columns[from].empty() || columns[to].empty())
      fail(ErrorKind::BadFile, "{}: expected source term<TAB>target term", row.location);
    const std::string& term = columns[to];
    if (!target.unknown(term).empty())
      fail(ErrorKind::BadFile,
           "{}: \"{}\" has characters that the model cannot write; expected others", row.location,
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
    for (size_t at = find_words(line, term); at != line.npos; at = find_words(line, term, at + 1))
      uses.push_back({at, at + term.size(), i});
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

}  // namespace fovea::infer
