#include "data/min_hash.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>

namespace fovea::train {
namespace {

// Words `first` to `last` of an endless text.
std::string words(int first, int last) {
  std::string text;
  for (int i = first; i < last; ++i) text += "word" + std::to_string(i * 7919) + " ";
  return text;
}

TEST(MinHash, EstimatesTheShareOfCommonShingles) {
  for (const int shared : {0, 500, 800, 950, 1000}) {
    // 1000 shingles each, of which `shared` are equal.
    const std::string one = words(0, 1004), other = words(1000 - shared, 2004 - shared);
    const double exact = shared / (2000.0 - shared);
    EXPECT_NEAR(similarity_of(*min_hash(one), *min_hash(other)), exact,
                4 * std::sqrt(exact * (1 - exact) / kMinima) + 0.02)
        << shared;
  }
}

TEST(MinHash, IgnoresCasePunctuationAndSpace) {
  EXPECT_EQ(min_hash("The fox sees, at night: MICE."), min_hash("the  fox\nsees at night mice"));
  EXPECT_NE(min_hash("the fox sees"), min_hash("the fox saw"));
  EXPECT_FALSE(min_hash(""));
  EXPECT_FALSE(min_hash(" ... !"));
  // Each character of such a script is a word.
  EXPECT_GT(similarity_of(*min_hash("天地玄黃宇宙洪荒日月盈昃辰宿列張"),
                          *min_hash("天地玄黃宇宙洪荒日月盈昃辰宿列")),
            0.7);
}

TEST(MinHash, HasBandsThatFindSimilarTexts) {
  for (const double similarity : {0.3, 0.5, 0.8, 0.9, 0.99, 1.0}) {
    const Banding banding = banding_for(similarity);
    EXPECT_LE(banding.rows * banding.bands, kMinima);
    EXPECT_GE(comparison_probability(banding, similarity), 0.95);
  }
  EXPECT_EQ(banding_for(0.8).rows, 7);
  EXPECT_NEAR(comparison_probability({7, 18}, 0.8), 0.9856, 1e-4);  // 1 - (1 - 0.8^7)^18
  EXPECT_NEAR(comparison_probability({7, 18}, 0.5), 0.1316, 1e-4);
}

TEST(DistinctTexts, FindSimilarTextsAmongMany) {
  DistinctTexts distinct(0.7);
  int found = 0;
  for (int i = 0; i < 3000; ++i) {
    EXPECT_FALSE(
        distinct.find_or_add(*min_hash(words(i * 100, i * 100 + 60)), static_cast<uint32_t>(i)))
        << i;
  }
  for (int i = 0; i < 100; ++i) {  // 54 of 58 shingles are common: s = 0.93
    const auto match = distinct.find_or_add(*min_hash(words(i * 3000 + 2, i * 3000 + 62)), 9999);
    found +=
        match && match->number == static_cast<uint32_t>(i * 30) && match->similarity > 0.7 ? 1 : 0;
  }
  EXPECT_GE(found, 99);
}

// A band that very many texts share must not take a time that grows with their square.
TEST(DistinctTexts, CompareFewTextsOfACommonBand) {
  DistinctTexts distinct(1);  // one band of all minima
  MinHash text{};
  EXPECT_FALSE(distinct.find_or_add(text, 1));
  const auto match = distinct.find_or_add(text, 2);
  ASSERT_TRUE(match);
  EXPECT_EQ(match->number, 1u);
  EXPECT_EQ(match->similarity, 1);
  DistinctTexts loose(0.9);
  for (uint32_t i = 0; i < 5000; ++i) {  // equal first bands, different others
    for (size_t at = 24; at < kMinima; ++at)
      text[at] = static_cast<uint8_t>(i * 31 + at * (i % 251));
    loose.find_or_add(text, i);
  }
}

}  // namespace
}  // namespace fovea::train
