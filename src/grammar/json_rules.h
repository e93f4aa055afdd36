#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "grammar/grammar.h"

namespace fovea {

// The parts of JSON (RFC 8259) as rules of a grammar. The amount of white space and the number of
// digits, which JSON does not limit, are limited.
class JsonRules {
 public:
  using Sequence = Grammar::Sequence;
  using Symbol = Grammar::Symbol;

  explicit JsonRules(Grammar& grammar);

  Symbol value() const { return Grammar::call(value_); }
  Symbol object() const { return Grammar::call(object_); }
  Symbol array() const { return Grammar::call(array_); }
  Symbol string() const { return Grammar::call(string_); }
  Symbol number() const { return Grammar::call(number_); }
  Symbol integer() const { return Grammar::call(integer_); }
  Symbol space() const { return Grammar::call(space_); }
  Symbol character() const { return Grammar::call(character_); }  // a character of a string
  Sequence text(std::string_view bytes) const { return grammar_.text(bytes); }

  Symbol one_of(const std::vector<Sequence>& alternatives);
  // Returns a rule for `first`, then `next` repeatedly: `least` to `most` parts in total. Unset
  // `most`: no upper limit.
  Symbol repeated(const Sequence& first, const Sequence& next, int64_t least,
                  std::optional<int64_t> most);
  // Returns a list in brackets: `least` to `most` parts, separated by commas.
  Sequence list(char open, const Sequence& part, int64_t least, std::optional<int64_t> most,
                char close);

 private:
  Symbol digits(int64_t least, int64_t most);
  // Returns `least` to `most` parts. Unset `most`: no upper limit.
  Sequence times(const Sequence& part, int64_t least, std::optional<int64_t> most);
  void add(Symbol rule, const std::vector<Sequence>& alternatives);
  void make_characters();
  void make_numbers();
  void make_values();

  Grammar& grammar_;
  int32_t value_, object_, array_, string_, number_, integer_, space_, character_;
};

// Returns the concatenation.
Grammar::Sequence operator+(Grammar::Sequence left, const Grammar::Sequence& right);

}  // namespace fovea
