// The input is a JSON Schema, a NUL, and bytes that select continuations: generation under any
// schema ends, gives JSON, and uses little memory.

#include <nlohmann/json.hpp>

#include "grammar/json_schema.h"
#include "write_under.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  const auto [schema, choices] = two_texts(data, size);
  succeeds([&] {
    text::Grammar::Bytes all;
    all.set();
    const text::SchemaGrammar grammar = text::schema_grammar(schema, all);
    text::GrammarAutomaton automaton(grammar.grammar, grammar.root);
    if (automaton.need(automaton.start()) >= text::Grammar::kNever)
      return;  // json_constraint refuses it
    require(nlohmann::json::accept(write_under(automaton, choices)), "the generated text is JSON");
  });
  return 0;
}
