#pragma once

#include "grammar/grammar_rules.h"

namespace fovea::text {

// The words for the constants true, false and null.
enum class Words : uint8_t {
  json,
  python,  // also True, False and None
};

// The parts of JSON (RFC 8259) as rules of a grammar. The amount of white space and the number of
// digits, which JSON does not limit, are limited.
class JsonRules : public GrammarRules {
 public:
  explicit JsonRules(Grammar& grammar, Words words = Words::json);

  Symbol value() const { return Grammar::call(value_); }
  Symbol object() const { return Grammar::call(object_); }
  Symbol array() const { return Grammar::call(array_); }
  Symbol string() const { return Grammar::call(string_); }
  Symbol number() const { return Grammar::call(number_); }
  Symbol integer() const { return Grammar::call(integer_); }
  Symbol space() const { return Grammar::call(space_); }
  Symbol character() const { return Grammar::call(character_); }  // a character of a string

  // Returns the text of a JSON value, with either word for each constant.
  Sequence literal(std::string_view json);
  // Returns a list in brackets: `least` to `most` parts, separated by commas.
  Sequence list(char open, const Sequence& part, int64_t least, std::optional<int64_t> most,
                char close);

 private:
  Symbol digits(int64_t least, int64_t most);
  void make_characters();
  void make_numbers();
  void make_values();

  Words words_;
  int32_t value_, object_, array_, string_, number_, integer_, space_, character_;
};

}  // namespace fovea::text
