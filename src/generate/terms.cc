#include "generate/terms.h"

#include <algorithm>

#include "base/error.h"
#include "base/files.h"
#include "unicode/utf8.h"

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
  const std::string text = read_file(path);
  size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    ++number;
    if (line.ends_with('\r')) line.pop_back();
    if (line.empty() || line.starts_with('#')) continue;
    const size_t tab = line.find('\t');
    const bool two = tab != std::string::npos && line.find('\t', tab + 1) == std::string::npos;
    if (!two || tab == 0 || tab + 1 == line.size() || utf8::valid_prefix(line) != line.size())
      fail(ErrorKind::BadFile, "{}: line {}: expected source term<TAB>target term in UTF-8", path,
           number);
    const std::string term = line.substr(tab + 1);
    if (!target.unknown(term).empty())
      fail(ErrorKind::BadFile,
           "{}: line {}: \"{}\" has characters that the model cannot write; expected others", path,
           number, term);
    terms_.emplace_back(line.substr(0, tab), term);
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
