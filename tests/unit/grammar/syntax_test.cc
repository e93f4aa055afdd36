// Regular expressions, grammars in llama.cpp's notation, and choices.

#include "grammar/syntax.h"

#include <gtest/gtest.h>

#include <random>
#include <regex>

#include "support/expect_error.h"
#include "unit/grammar/reader.h"

namespace fovea::text {
namespace {

Grammar::Bytes every_byte() {
  Grammar::Bytes all;
  all.set();
  return all;
}

Reader of_regex(const std::string& regex) { return Reader(regex_grammar(regex, every_byte())); }
Reader of_gbnf(const std::string& text) { return Reader(gbnf_grammar(text, every_byte())); }

// Returns a random expression over a and b. Parts that may be empty are repeated too.
std::string random_regex(std::mt19937_64& random, int depth) {
  static const char* const atoms[] = {"a", "b", ".", "[ab]", "[^a]", "(?:)", "ab"};
  static const char* const counts[] = {"*", "+", "?", "{2}", "{1,}", "{0,2}", "*?"};
  if (depth == 0) return atoms[random() % std::size(atoms)];
  const std::string one = random_regex(random, depth - 1);
  switch (random() % 3) {
    case 0: return one + random_regex(random, depth - 1);
    case 1: return "(" + one + "|" + random_regex(random, depth - 1) + ")";
    default: return "(?:" + one + ")" + counts[random() % std::size(counts)];
  }
}

TEST(RegexGrammar, MatchesLikeTheStandardLibrary) {
  std::mt19937_64 random(1);
  std::vector<std::string> texts = {""};
  for (size_t i = 0; texts.size() < 127; ++i)  // all texts of a and b with up to 6 letters
    for (const char letter : {'a', 'b'}) texts.push_back(texts[i] + letter);
  for (int round = 0; round < 200; ++round) {
    const std::string expression = random_regex(random, 3);
    const std::regex standard(expression);
    Reader reader = of_regex(expression);
    for (const std::string& text : texts)
      ASSERT_EQ(reader.reads(text), std::regex_match(text, standard)) << expression << ": " << text;
  }
}

TEST(RegexGrammar, KnowsClassesEscapesAndCounts) {
  Reader date = of_regex(R"(^\d{4}-(0[1-9]|1[0-2])-\d\d$)");
  EXPECT_TRUE(date.reads("2024-12-31"));
  EXPECT_FALSE(date.reads("2024-13-31"));
  EXPECT_EQ(date.shortest(), 10);
  Reader words = of_regex(R"([\w.]+@[a-z-]+\.(?:com|org)\s?)");
  EXPECT_TRUE(words.reads("a.b@c-d.org"));
  EXPECT_FALSE(words.reads("a b@c.org"));
  Reader set = of_regex(R"([]^\]x41\x41\u00e4-]{1,3})");
  EXPECT_TRUE(set.reads("]^-"));
  EXPECT_TRUE(set.reads("Aä"));
  EXPECT_FALSE(set.reads("]^-A"));
  Reader many = of_regex("(?:ab?){100}");
  EXPECT_TRUE(many.reads(repeated(100, "ab")));
  EXPECT_FALSE(many.reads(repeated(101, "a")));
}

// Every character is one, two, three or four bytes, and nothing else is a character.
TEST(RegexGrammar, MatchesCharactersInUtf8) {
  Reader any = of_regex(".");
  for (const char* text :
       {"a", "\x7f", "ä", "߿", "ࠀ", "漢", "퟿", "\xee\x80\x80", "😀", "\xf4\x8f\xbf\xbf"})
    EXPECT_TRUE(any.reads(text)) << text;
  for (const char* text : {"\n", "\x80", "\xc0\x80", "\xe0\x80\x80", "\xed\xa0\x80",
                           "\xf0\x80\x80\x80", "\xf4\x90\x80\x80", "\xff", "ab", ""})
    EXPECT_FALSE(any.reads(text)) << text;
  Reader greek = of_regex("[α-ω]");
  EXPECT_TRUE(greek.reads("λ"));
  EXPECT_FALSE(greek.reads("Λ"));
  Reader others = of_regex("[^α-ω]");
  EXPECT_FALSE(others.reads("λ"));
  EXPECT_TRUE(others.reads("Λ"));
  EXPECT_TRUE(others.reads("漢"));
}

TEST(RegexGrammar, RefusesWhatItDoesNotSupport) {
  const auto refused = [](const std::string& expression, const char* what) {
    expect_error(ErrorKind::InvalidArgument, {"regex: ", what, "expected"},
                 [&] { of_regex(expression); });
  };
  refused("(?=a)", "a group with a condition (line 1, character 3)");
  refused("(?<n>a)", "a group with a condition");
  refused(R"((a)\1)", "an escape that is not supported");
  refused(R"(a\b)", "an escape that is not supported");
  refused("a^b", "an anchor inside");
  refused("a$b", "an anchor inside");
  refused("*a", "nothing to repeat");
  refused("a**", "nothing to repeat");
  refused("a++", "a possessive quantifier");
  refused("(a", "the end");
  refused("a)", "a closing parenthesis alone");
  refused("[a", "the end");
  refused("[b-a]", "not ascending");
  refused("[[:digit:]]", "a POSIX class");
  refused("a{3,2}", "fewer than the minimum");
  refused("a{x}", "not a number");
  refused("a{100001}", "too many repetitions");
  refused("\\", "the end");
  refused("\xff", "not UTF-8 (byte 1)");
  refused(std::string(100, '('), "nested deeper than 64 levels");
  refused(std::string((1 << 20) + 1, 'a'), "1048577 bytes");
  std::string huge = "a";
  for (int i = 0; i < 4; ++i) huge = "(?:" + huge + "b){99999}";
  EXPECT_NO_THROW(of_regex(huge)) << "counts take few rules";
  refused(std::string(200'000, 'a'), "too many parts");
}

constexpr const char* kArithmetic = R"gbnf(
# sums of products
root ::= sum "\n"?
sum  ::= product ( [-+] product )*
product ::= factor (("*" | "/")
                    factor)*     # over two lines
factor ::= [0-9]+ | "(" sum ")" |
           "x" [0-9]{1,2}
)gbnf";

TEST(Gbnf, ReadsRules) {
  Reader sums = of_gbnf(kArithmetic);
  for (const char* text : {"1", "12+3", "(1+2)*x3/x45\n", "((7))"})
    EXPECT_TRUE(sums.reads(text)) << text;
  for (const char* text : {"", "1+", "x", "x123", "(1", "1 + 2"})
    EXPECT_FALSE(sums.reads(text)) << text;
  EXPECT_EQ(sums.shortest(), 1);
}

TEST(Gbnf, ReadsEscapesAndSets) {
  Reader reader = of_gbnf(R"(root ::= "\"\\\x41\u00e4\U0001F600" [^"\n\]-]* .)");
  EXPECT_TRUE(reader.reads("\"\\Aä😀bc漢]"));
  EXPECT_FALSE(reader.reads("\"\\Aä😀b]c"));
}

TEST(Gbnf, RepeatsPartsThatMayBeEmpty) {
  Reader reader = of_gbnf("root ::= (item* \";\"?)*\nitem ::= \"a\"? \"b\"?\n");
  for (const char* text : {"", "a", "b;", "ab;;ba"}) EXPECT_TRUE(reader.reads(text)) << text;
  EXPECT_FALSE(reader.reads("c"));
  Reader mutual = of_gbnf("root ::= (one | two)+\none ::= \"\" | \"1\" two\ntwo ::= one?\n");
  EXPECT_TRUE(mutual.reads(""));
  EXPECT_TRUE(mutual.reads("111"));
}

TEST(Gbnf, RefusesInvalidGrammars) {
  const auto refused = [](const std::string& text, const char* what) {
    expect_error(ErrorKind::InvalidArgument, {"grammar: ", what}, [&] { of_gbnf(text); });
  };
  refused("", "rule root is missing");
  refused("root ::= other", "rule other is missing");
  refused("root ::= \"a\"\nroot ::= \"b\"", "rule root is repeated (line 2");
  refused("root = \"a\"", "::= after a name");
  refused("root ::= \"a", "the end");
  refused("root ::= \"a\nb\"", "the end of the line (line 2");
  refused("root ::= [a", "the end");
  refused("root ::= (\"a\"", "a closing parenthesis");
  refused("root ::= \"a\" )", "the end of a rule");
  refused("root ::= \"\\q\"", "an unknown escape");
  refused("root ::= \"a\"{2,1}", "fewer than the minimum");
  refused("root ::= * \"a\"", "the end of a rule");
  refused("root ::= root \"a\" | \"a\"", "a rule begins with itself");
  refused("root ::= a\na ::= b \"x\" | \"y\"\nb ::= \"z\"? a", "a rule begins with itself");
  refused("root ::= " + std::string(100, '('), "nested deeper than 64 levels");
  EXPECT_GE(of_gbnf("root ::= \"a\" root").shortest(), Grammar::kNever);
}

TEST(Choice, AllowsTheTexts) {
  Reader reader(choice_grammar({"yes", "no", "not sure"}, every_byte()));
  for (const char* text : {"yes", "no", "not sure"}) EXPECT_TRUE(reader.reads(text));
  for (const char* text : {"", "n", "nosure", "yes "}) EXPECT_FALSE(reader.reads(text));
  expect_error(ErrorKind::InvalidArgument, {"choice: no texts"},
               [] { choice_grammar({}, every_byte()); });
  expect_error(ErrorKind::InvalidArgument, {"choice: \"\" is empty"},
               [] { choice_grammar({"a", ""}, every_byte()); });
}

}  // namespace
}  // namespace fovea::text
