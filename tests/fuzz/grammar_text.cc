// The input is "r" and a regular expression, or any other letter and a grammar of llama.cpp, then a
// NUL, and bytes that select continuations: generation under any grammar ends and uses little
// memory.

#include "grammar/syntax.h"
#include "write_under.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace fovea;
  if (size == 0) return 0;
  const bool regex = data[0] == 'r';
  const auto [text, choices] = two_texts(data + 1, size - 1);
  succeeds([&] {
    text::Grammar::Bytes all;
    all.set();
    const text::SchemaGrammar grammar =
        regex ? text::regex_grammar(text, all) : text::gbnf_grammar(text, all);
    text::GrammarAutomaton automaton(grammar.grammar, grammar.root);
    if (automaton.need(automaton.start()) >= text::Grammar::kNever)
      return;  // refused as a constraint
    write_under(automaton, choices);
  });
  return 0;
}
