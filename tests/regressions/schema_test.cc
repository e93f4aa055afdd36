// Schemas in requests that stopped the server or exhausted its memory.

#include <gtest/gtest.h>

#include "support/expect_error.h"
#include "unit/grammar/reader.h"

namespace fovea {
namespace {

text::SchemaGrammar grammar_of(const std::string& schema) {
  text::Grammar::Bytes all;
  all.set();
  return text::schema_grammar(schema, all);
}

int32_t state_after(text::GrammarAutomaton& automaton, const std::string& text) {
  int32_t state = automaton.start();
  for (const char c : text) {
    if (state != text::GrammarAutomaton::kDead)
      state = automaton.step(state, static_cast<uint8_t>(c));
  }
  return state;
}

// Returns the bytes of memory that the automaton uses after `depth` brackets.
size_t cost_of_brackets(const text::SchemaGrammar& grammar, size_t depth) {
  text::GrammarAutomaton automaton(grammar.grammar, grammar.root);
  EXPECT_NE(state_after(automaton, std::string(depth, '[')), text::GrammarAutomaton::kDead);
  return automaton.bytes();
}

// A schema of 383 bytes took 2 GB of memory per minute, and other clients waited: if each array may
// have one or two levels, n brackets can be parsed in up to 2^n ways, and each way kept its own
// stack. Equal stacks are now merged.
TEST(Schemas, TakeMemoryLinearInTheDepth) {
  const text::SchemaGrammar grammar = grammar_of(R"({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [
    {"type": "array", "items": {"$ref": "#/$defs/a"}},
    {"type": "array", "items": {"type": "array", "items": {"$ref": "#/$defs/a"}}},
    {"type": "null"}]}}})");
  const size_t at_100 = cost_of_brackets(grammar, 100), at_200 = cost_of_brackets(grammar, 200),
               at_400 = cost_of_brackets(grammar, 400);
  EXPECT_LT(at_400 - at_200, 3 * (at_200 - at_100)) << at_100 << " " << at_200 << " " << at_400;
  EXPECT_LT(at_400, size_t{2} << 20);
  text::GrammarAutomaton automaton(grammar.grammar, grammar.root);
  for (const size_t depth : {1, 2, 3, 60}) {
    const std::string text = std::string(depth, '[') + "null, [null]" + std::string(depth, ']');
    const int32_t state = state_after(automaton, text);
    ASSERT_NE(state, text::GrammarAutomaton::kDead) << text;
    EXPECT_TRUE(automaton.accepts(state)) << text;
  }
}

// The work that remains after merging is limited, and only the request that exceeds the limit is
// refused.
TEST(Schemas, AreReadWithLimitedWork) {
  std::vector<std::string> words;
  std::string schema = R"({"enum": [)";
  for (int i = 0; i < 900; ++i) {
    words.push_back(fmt::format("\"{}{:x>90}\"", i, ""));
    schema += words.back() + ",";
  }
  const text::SchemaGrammar grammar = grammar_of(schema + "0]}");
  text::GrammarAutomaton automaton(grammar.grammar, grammar.root);
  const auto read_all = [&](int64_t allowed) {
    for (const std::string& word : words) {
      automaton.allow(allowed);
      state_after(automaton, word);
    }
  };
  expect_error(ErrorKind::InvalidArgument, {"too many ways"}, [&] { read_all(0); });
  read_all(text::GrammarAutomaton::kMostWork);
}

// A chain of 12,000 $ref crashed the server: the compiler recursed once per $ref. It now follows
// chains in a loop.
TEST(Schemas, FollowChainsOfReferences) {
  constexpr int kLength = 12'000;
  for (const std::string last : {R"({"type": "null"})", R"({"$ref": "#"})"}) {
    std::string schema = R"({"$ref": "#/$defs/a0", "$defs": {)";
    for (int i = 0; i < kLength; ++i)
      schema += fmt::format(R"("a{}": {{"$ref": "#/$defs/a{}"}}, )", i, i + 1);
    const text::SchemaGrammar grammar =
        grammar_of(fmt::format("{}\"a{}\": {}}}}}", schema, kLength, last));
    text::GrammarAutomaton automaton(grammar.grammar, grammar.root);
    const bool some = automaton.need(automaton.start()) < text::Grammar::kNever;
    EXPECT_EQ(some, last.find("null") != std::string::npos);
    EXPECT_EQ(state_after(automaton, "null") != text::GrammarAutomaton::kDead, some);
  }
}

// Each of these schemas took minutes, overflowed the stack, or took far more memory than its size:
// schemas were copied at each level, and lists grew element by element.
TEST(Schemas, OfAnyShapeCompileOrAreRefused) {
  std::string names, texts, nested = R"({"const": 0})", deep = R"({"type": "null"})";
  for (int i = 0; i < 40'000; ++i) {
    names += fmt::format(R"("a{}": {{}}, )", i);
    texts += fmt::format("\"b{}\",", i);
  }
  const std::string long_name(60'000, 'n');
  for (int i = 0; i < 30; ++i) nested = R"({"properties": {"a": )" + nested + "}}";
  for (int i = 0; i < 10; ++i)
    deep = fmt::format(R"({{"properties": {{"{}": {}}}}})", long_name, deep);
  const std::vector<std::string> schemas = {
      R"({"$defs": {)" + names + R"("x": 0}, "$ref": "#/$defs/a7"})",
      R"({"properties": {)" + names + R"("x": 0}})",
      R"({"enum": [)" + texts + "0]}",
      R"({"required": [)" + texts + "\"c\"]}",
      R"({"anyOf": [)" + text::repeated(60'000, "{},") + "{}]}",
      R"({"prefixItems": [)" + text::repeated(60'000, "{},") + "{}]}",
      R"({"type": [)" + text::repeated(60'000, "\"object\",") +
          R"("object"], "properties": {"a": {}}})",
      R"({"type": "string", "minLength": 100000})",
      R"({"maxItems": 100000, "items": {"maxItems": 100000}})",
      R"({"prefixItems": [)" + text::repeated(60'000, R"({"$ref": "#"},)") + "{}]}",
      R"({"$ref": "#/)" + std::string(500'000, 'a') + "\"}",
      R"({"const": ")" + std::string(900'000, 'a') + "\"}",
      R"({"title": ")" + std::string(2'000'000, 'a') + "\"}",
      text::repeated(60, R"({"allOf": [)") + "{}" + text::repeated(60, "]}"),
      text::repeated(100'000, R"({"allOf": [)"),
      nested,
      deep};
  for (const std::string& schema : schemas) {
    try {
      text::Reader reader(schema);
      EXPECT_GT(reader.shortest(), 0);
    } catch (const Error& error) {
      const std::string message = error.what();
      EXPECT_LT(message.size(), 500u) << message;
      EXPECT_EQ(message.find('\n'), std::string::npos);
    }
  }
}

// A schema of 40 bytes took megabytes, since a count needed one rule per repetition. Counts are now
// composed of powers of two.
TEST(Schemas, BoundLengthsInLittleMemory) {
  for (const auto& [least, most] : std::vector<std::pair<int, int>>{
           {0, 0}, {0, 1}, {1, 1}, {0, 2}, {2, 3}, {0, 7}, {5, 8}, {4, 20}, {13, 13}}) {
    text::Reader bounded(
        fmt::format(R"({{"type": "string", "minLength": {}, "maxLength": {}}})", least, most));
    text::Reader open(fmt::format(R"({{"items": {{"const": 1}}, "minItems": {}}})", least));
    text::Reader list(
        fmt::format(R"({{"items": {{"const": 1}}, "minItems": {}, "maxItems": {}}})", least, most));
    for (int count = 0; count < 25; ++count) {
      const bool fits = least <= count && count <= most;
      EXPECT_EQ(bounded.reads("\"" + std::string(static_cast<size_t>(count), 'x') + "\""), fits);
      const std::string ones = "[" + (count > 0 ? "1" + text::repeated(count - 1, ",1") : "") + "]";
      EXPECT_EQ(list.reads(ones), fits) << least << " " << most << " " << ones;
      EXPECT_EQ(open.reads(ones), least <= count) << least << " " << ones;
    }
  }
  text::Reader large(R"({"type": "string", "minLength": 99990, "maxLength": 99995})");
  EXPECT_EQ(large.shortest(), 99992);
  EXPECT_TRUE(large.reads("\"" + std::string(99'994, 'x') + "\""));
  EXPECT_FALSE(large.reads("\"" + std::string(99'996, 'x') + "\""));
}

}  // namespace
}  // namespace fovea
