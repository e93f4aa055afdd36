#include "unicode/utf8.h"

#include <gtest/gtest.h>

namespace fovea::text::utf8 {
namespace {

TEST(Utf8, RoundTripsEveryCodePoint) {
  for (char32_t c = 0; c < code_points; ++c) {
    std::string text;
    append(text, c);
    const Character character = first(text);
    const bool surrogate = c >= 0xD800 && c < 0xE000;
    ASSERT_EQ(character.valid, !surrogate) << static_cast<uint32_t>(c);
    if (surrogate) continue;
    ASSERT_TRUE(character.code_point == c);
    ASSERT_EQ(character.bytes, text.size());
  }
}

TEST(Utf8, RefusesInvalidSequences) {
  for (const char* text : {"\x80", "\xBF", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF",
                           "\xF0\x80\x80\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF",
                           "\xC3", "\xE2\x82", "\xC3(", "\xF0\x9F\x91"}) {
    const Character character = first(text);
    EXPECT_FALSE(character.valid) << text;
    EXPECT_EQ(character.bytes, 1u);
    EXPECT_TRUE(character.code_point == replacement);
    EXPECT_EQ(valid_prefix(text), 0u);
  }
}

TEST(Utf8, FindsTheFirstInvalidByte) {
  for (size_t length = 0; length < 40; ++length) {
    const std::string good = std::string(length, 'x') + "é";
    EXPECT_EQ(valid_prefix(good + std::string(20, 'y')), length + 22);
    EXPECT_EQ(valid_prefix(good + "\xFF" + std::string(20, 'y')), length + 2);
  }
}

TEST(Utf8, MeasuresAnIncompleteSuffix) {
  EXPECT_EQ(incomplete_suffix(""), 0u);
  EXPECT_EQ(incomplete_suffix("aé"), 0u);
  EXPECT_EQ(incomplete_suffix("a\xC3"), 1u);
  EXPECT_EQ(incomplete_suffix("a\xE2\x82"), 2u);
  EXPECT_EQ(incomplete_suffix("a\xF0\x9F\x91"), 3u);
  EXPECT_EQ(incomplete_suffix("a\xFF"), 0u);  // never the start of a character
  EXPECT_EQ(incomplete_suffix("\x80\x80\x80\x80"), 0u);
}

TEST(Utf8, ReplacesInvalidBytes) {
  EXPECT_EQ(repaired("a\xE2\x82z\xFF"), "a\uFFFD\uFFFDz\uFFFD");
  EXPECT_EQ(repaired("é"), "é");
}

}  // namespace
}  // namespace fovea::text::utf8
