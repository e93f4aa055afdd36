// Regular expressions in the syntax of Oniguruma, with its meaning of classes.

#include "unicode/pattern.h"

#include "support/expect_error.h"

namespace fovea::text {
namespace {

// Returns the stretches of a text that match, separated by "|".
std::string matches(const std::string& expression, const std::string& text) {
  std::vector<Stretch> stretches;
  Pattern::regex(expression, "pattern").find(text, stretches);
  std::string found;
  for (const Stretch& stretch : stretches)
    if (stretch.matches)
      found += (found.empty() ? "" : "|") + text.substr(stretch.begin, stretch.end - stretch.begin);
  return found;
}

// U+0941 is a vowel sign, which is alphabetic; U+094D, the virama, is a mark and is not.
TEST(Pattern, ClassesAreThoseOfOniguruma) {
  const std::string text = "\u0926\u0941\u0938\u094D a\u00E9 \u2160 1 +$.\u2014";
  EXPECT_EQ(matches("[[:alpha:]]+", text), "\u0926\u0941\u0938|a\u00E9|\u2160");
  EXPECT_EQ(matches(R"(\p{Alpha}+)", text), matches("[[:alpha:]]+", text));
  EXPECT_EQ(matches("[[:punct:]]+", text), "+$.\u2014");
  EXPECT_EQ(matches(R"(\p{Punct}+)", text), ".\u2014");
  EXPECT_EQ(matches(R"([^\p{Punct}\p{Alpha}\s]+)", text), "\u094D|1|+$");
  EXPECT_EQ(matches("[[:^alpha:]&&[:^space:]]+", text), "\u094D|1|+$.\u2014");
  EXPECT_EQ(matches(R"(\p{Lowercase_Letter}+)", text), "a\u00E9");
  EXPECT_EQ(matches(R"(\P{letter}+)", "a1b"), "1");
  EXPECT_EQ(matches("[[:upper:][:digit:]]+", "aB1c"), "B1");
}

TEST(Pattern, CodePointsHaveFourDigits) {
  EXPECT_EQ(matches(R"(\u4e2d|[\u0061-\u0063]+)", "x\u4e2d abc"), "\u4e2d|abc");
  expect_error(ErrorKind::Unsupported, {"pattern", "\\u without four hexadecimal digits"},
               [] { Pattern::regex(R"(\u4e)", "pattern"); });
}

}  // namespace
}  // namespace fovea::text
