#pragma once

#include <optional>
#include <string_view>

#include "grammar/grammar_automaton.h"
#include "grammar/schema_place.h"

namespace fovea::text {

// Decides whether a regular expression of JSON Schema matches a text.
class TextMatcher {
 public:
  // Errors of the expression begin with the place.
  TextMatcher(const std::string& pattern, const Place& place);
  bool matches(std::string_view text);

 private:
  std::optional<GrammarAutomaton> automaton_;
};

}  // namespace fovea::text
