#pragma once

#include <memory>
#include <string>

#include "grammar/grammar_automaton.h"
#include "grammar/json_schema.h"

namespace fovea::text {

// Decides whether a grammar, such as that of a schema, accepts an entire text.
class Reader {
 public:
  explicit Reader(const std::string& schema) : Reader(schema_grammar(schema, every())) {}
  explicit Reader(const SchemaGrammar& grammar)
      : automaton_(std::make_unique<GrammarAutomaton>(grammar.grammar, grammar.root)) {}
  bool reads(const std::string& text) {
    int32_t state = automaton_->start();
    for (const char c : text) {
      automaton_->allow(GrammarAutomaton::kMostWork);
      state = automaton_->step(state, static_cast<uint8_t>(c));
      if (state == GrammarAutomaton::kDead) return false;
    }
    return automaton_->accepts(state);
  }
  int64_t shortest() const { return automaton_->need(automaton_->start()); }

 private:
  static Grammar::Bytes every() {
    Grammar::Bytes all;
    all.set();
    return all;
  }

  std::unique_ptr<GrammarAutomaton> automaton_;
};

inline std::string repeated(int count, const std::string& part) {
  std::string text;
  for (int i = 0; i < count; ++i) text += part;
  return text;
}

}  // namespace fovea::text
