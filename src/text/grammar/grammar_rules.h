#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace fovea::text {

// Combines sequences of a grammar to rules. The number of symbols is limited.
class GrammarRules {
 public:
  using Sequence = Grammar::Sequence;
  using Symbol = Grammar::Symbol;

  // `name`: of the text that describes the grammar, for errors.
  GrammarRules(Grammar& grammar, const char* name) : grammar_(grammar), name_(name) {}

  Sequence text(std::string_view bytes) const { return grammar_.text(bytes); }
  Symbol rule() { return Grammar::call(grammar_.add_rule()); }  // without alternatives
  void add(Symbol rule, const std::vector<Sequence>& alternatives);
  Symbol one_of(const std::vector<Sequence>& alternatives);
  // Returns a rule for `first`, then `next` repeatedly: `least` to `most` parts in total. Unset
  // `most`: no upper limit.
  Symbol repeated(const Sequence& first, const Sequence& next, int64_t least,
                  std::optional<int64_t> most);

 protected:
  Grammar& grammar_;

 private:
  // Returns `least` to `most` parts. Unset `most`: no upper limit.
  Sequence times(const Sequence& part, int64_t least, std::optional<int64_t> most);

  const char* name_;
};

// Returns the concatenation.
Grammar::Sequence operator+(Grammar::Sequence left, const Grammar::Sequence& right);

}  // namespace fovea::text
