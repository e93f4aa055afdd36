// Texts of up to a megabyte that once took seconds or minutes to compile. Each must be built, or
// be refused by a limit that counts values, parts or work.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "grammar/grammar_automaton.h"
#include "grammar/json_schema.h"
#include "grammar/syntax.h"

namespace fovea::text {
namespace {

std::string times(int count, const std::function<std::string(int)>& part,
                  const std::string& between = "") {
  std::string text;
  for (int i = 0; i < count; ++i) text += (i > 0 ? between : "") + part(i);
  return text;
}

std::string times(int count, const std::string& part, const std::string& between = "") {
  const auto same = [&](int) { return part; };
  return times(count, same, between);
}

// `part`: a format of the number i.
std::string numbered(int count, const char* part, const std::string& between = ",") {
  const auto one = [&](int i) { return fmt::format(fmt::runtime(part), i); };
  return times(count, one, between);
}

struct Bomb {
  const char* name;
  std::string text;
  const char* refusal;  // a part of the error; nullptr: the grammar is built
};
using Compile = SchemaGrammar (*)(std::string_view, const Grammar::Bytes&);

void expect_bounded(Compile compile, const std::vector<Bomb>& bombs) {
  for (const Bomb& bomb : bombs) {
    std::string error = "built";
    try {
      const SchemaGrammar grammar = compile(bomb.text, Grammar::Bytes().set());
      const GrammarAutomaton automaton(grammar.grammar, grammar.root);
    } catch (const Error& refusal) {
      error = refusal.what();
    }
    EXPECT_NE(error.find(bomb.refusal != nullptr ? bomb.refusal : "built"), std::string::npos)
        << bomb.name << ": " << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << bomb.name;
  }
}

std::string enum_of(const std::string& values) { return "{\"enum\":[" + values + "]}"; }

std::string one_of(const std::string& schemas) { return "{\"oneOf\":[" + schemas + "]}"; }

std::string names(int count) {
  return R"({"type":"object","propertyNames":)" + enum_of(numbered(count, "\"{:x}\"")) + "}";
}

// All values of one enum were compared with all of the other.
TEST(Bombs, OfEnumsAreBounded) {
  const auto numbers = [](int count, int first) {
    const auto one = [&](int i) { return fmt::to_string(first + i); };
    return enum_of(times(count, one, ","));
  };
  const auto overlapping = [&](int i) { return numbers(100, 1000 * i + i % 2); };
  const std::string same =
      enum_of(times(260'000, "1", ",")) + "," + enum_of(times(260'000, "2", ","));
  expect_bounded(schema_grammar,
                 {{"equal values", one_of(same), "too many values"},
                  {"different values",
                   one_of(numbers(24'000, 100'000) + "," + numbers(24'000, 200'000)), "too large"},
                  {"many enums", one_of(times(400, overlapping, ",")), "too large"}});
}

// Each name was compared with all before it.
TEST(Bombs, OfNamesAreBounded) {
  expect_bounded(
      schema_grammar,
      {{"2,000 names", names(2000), nullptr},
       {"40,000 names", names(40'000), "propertyNames has"},
       {"60,000 names", names(60'000), "too many values"},
       {"130,000 names", names(130'000), "too many values"},
       {"80,000 properties", "{\"properties\":{" + numbered(80'000, "\"{}\":{{}}") + "}}",
        "too many values"},
       {"properties of many schemas",
        "{\"allOf\":[" + numbered(1900, R"({{"properties":{{"p{}":{{}}}}}})") + "]}", "too many"},
       {"properties that require others",
        R"({"dependentRequired":{)" + numbered(2000, R"("a{}":["b"])") + "}}", "too many"}});
}

// Each schema of oneOf was compared with all others.
TEST(Bombs, OfOneOfAreBounded) {
  const char* const tagged =
      R"({{"properties":{{"kind":{{"const":"{0}"}},"x{0}":{{}}}},"required":["kind"]}})";
  const char* const untagged = R"({{"properties":{{"x{0}":{{}}}},"required":["x{0}"]}})";
  expect_bounded(schema_grammar,
                 {{"250 objects with tags", one_of(numbered(250, tagged)), nullptr},
                  {"100 objects without tags", one_of(numbered(100, untagged)), nullptr},
                  {"900 objects without tags", one_of(numbered(900, untagged)), "too many"}});
}

TEST(Bombs, OfReferencesAndConditionsAreBounded) {
  const std::string chain =
      R"({"$ref":"#/$defs/d0","$defs":{)" +
      times(20'000,
            [](int i) { return fmt::format(R"("d{}":{{"$ref":"#/$defs/d{}"}},)", i, i + 1); }) +
      R"("d20000":{"type":"null"}}})";
  const std::string notes = R"({"allOf":[{"anyOf":[)" + times(900, R"({"type":"null"})", ",") +
                            R"(]},{"$ref":"#/$defs/n"}],"$defs":{"n":{"type":"null",)" +
                            numbered(20'000, "\"x-{}\":0") + "}}}";
  const std::string conditions =
      times(28, R"({"if":{"required":["a"]},"else":{"const":1},"then":)") +
      enum_of(times(40'000, "1", ",")) + times(28, "}");
  expect_bounded(schema_grammar,
                 {{"a chain of references", chain, nullptr},
                  {"properties, each with a reference",
                   R"({"$defs":{"a":{"type":"integer"}},"properties":{)" +
                       numbered(2000, R"("p{}":{{"$ref":"#/$defs/a"}})") + "}}",
                   nullptr},
                  {"notes that each alternative reads again", notes, "too many combinations"},
                  {"conditions in conditions", conditions, "too many combinations"}});
}

TEST(Bombs, OfCountsAndPatternsAreBounded) {
  const auto items = [](int count, const char* item) {
    return "{\"prefixItems\":[" + numbered(count, item) + "]}";
  };
  expect_bounded(
      schema_grammar,
      {{"nested counts",
        R"({"minItems":99999,"maxItems":100000,"items":{"minItems":99999,"items":
            {"minLength":99999}}})",
        nullptr},
       {"a pattern with many lengths",
        R"({"minLength":1000,"pattern":"^(a{1,500}|)" + times(30'000, "c", "|") + ")*$\"}",
        "too many ways"},
       {"many patterns", items(20'000, R"({{"pattern":"^a{}"}})"), "too large"},
       {"many ranges", items(20'000, R"({{"minimum":{}.5}})"), "too large"},
       {"a step of many remainders", R"({"multipleOf":999999937})", "too large"}});
}

std::string name_of(int i) {
  static const std::string letters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
  const auto letter = [](int number) { return letters[static_cast<size_t>(number) % 62]; };
  return {letter(i / 3844), letter(i / 62), letter(i)};
}

// Returns rules of which each calls the next one; the last one is empty. Each pass over the rules
// found only one of them to be empty.
std::string empty_chain(int count) {
  const auto rule = [](int i) { return name_of(i) + "::=" + name_of(i + 1) + "\n"; };
  return "root::=" + name_of(0) + "\n" + times(count, rule) + name_of(count) + "::=\"\"\n";
}

TEST(Bombs, OfGrammarsAreBounded) {
  const auto empty_rule = [](int i) { return name_of(i) + "::=\"\"\n"; };
  expect_bounded(
      gbnf_grammar,
      {{"rules that may be empty", empty_chain(24'000), nullptr},
       {"55,000 rules that may be empty", empty_chain(55'000), "too many parts"},
       {"95,000 rules that may be empty", empty_chain(95'000), "too many parts"},
       {"a rule of empty rules",
        "root::=" + times(15'000, name_of, " ") + "\n" + times(15'000, empty_rule), nullptr},
       {"rules that call each other",
        "root::=a\na::=\"x\" b|\"\"\nb::=" + times(40'000, "a", "|") + "\n", nullptr},
       {"empty groups", "root::=" + times(300'000, "()"), "too many parts"}});
}

TEST(Bombs, OfExpressionsAreBounded) {
  const auto set = [](int i) {
    std::string letters = "[!";
    for (int bit = 0; bit < 15; ++bit)
      if ((i >> bit & 1) != 0) letters += static_cast<char>('a' + bit);
    return letters + "]";
  };
  expect_bounded(regex_grammar,
                 {{"500,000 optional letters", times(500'000, "a?"), "too many parts"},
                  {"20,000 optional letters", times(20'000, "a?"), "too large"},
                  {"5,000 optional letters", times(5000, "a?"), nullptr},
                  {"300,000 alternatives", times(300'000, "ab", "|"), "too many parts"},
                  {"40,000 alternatives", times(40'000, "a", "|"), nullptr},
                  {"groups in groups", times(30, "(") + "a?" + times(30, "){0,100000}b?"), nullptr},
                  {"sets of wide characters", numbered(24'000, "[a-c\\u{:04x}]", ""), "too large"},
                  {"sets of bytes", times(24'000, set), nullptr}});
}

}  // namespace
}  // namespace fovea::text
