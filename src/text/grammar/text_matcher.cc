#include "grammar/text_matcher.h"

#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "grammar/json_strings.h"

namespace fovea::text {

TextMatcher::TextMatcher(const std::string& pattern, const Place& place) {
  auto grammar = std::make_shared<Grammar>(Grammar::Bytes().set());
  try {
    const int32_t root = strings_matching(pattern, 0, std::nullopt, *grammar).index;
    grammar->finish();
    automaton_.emplace(std::move(grammar), root);
  } catch (const Error& error) {
    fail(error.kind(), "{}: {}", text_of(place), error.what());
  }
}

bool TextMatcher::matches(std::string_view text) {
  int32_t state = automaton_->start();
  for (const char c : nlohmann::json(text).dump()) {
    state = automaton_->step(state, static_cast<uint8_t>(c));
    if (state == GrammarAutomaton::kDead) return false;
  }
  return automaton_->accepts(state);
}

}  // namespace fovea::text
