#include "fovea/core/random.h"

#include <gtest/gtest.h>

#include <cmath>

namespace fovea {
namespace {

using Words = std::array<uint32_t, 4>;

Words raw(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint32_t k0, uint32_t k1) {
  return philox(uint64_t{k1} << 32 | k0, static_cast<Stream>(c3), c2, uint64_t{c1} << 32 | c0);
}

// Known answers from Random123's kat_vectors.
TEST(Philox, MatchesKnownAnswers) {
  EXPECT_EQ(raw(0, 0, 0, 0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(raw(ones, ones, ones, ones, ones, ones),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(raw(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, DrawsTheWordsOfConsecutiveCounters) {
  Random random(7, Stream::shuffle, 3);
  for (uint64_t counter = 0; counter < 3; ++counter) {
    for (uint32_t word : philox(7, Stream::shuffle, 3, counter)) EXPECT_EQ(random.word(), word);
  }
}

TEST(Random, StreamsAndSubstreamsAndSeedsDiffer) {
  const Words words = philox(1, Stream::init, 0, 0);
  EXPECT_NE(words, philox(2, Stream::init, 0, 0));
  EXPECT_NE(words, philox(uint64_t{1} << 32 | 1, Stream::init, 0, 0));
  EXPECT_NE(words, philox(1, Stream::dropout, 0, 0));
  EXPECT_NE(words, philox(1, Stream::init, 1, 0));
  EXPECT_NE(words, philox(1, Stream::init, 0, uint64_t{1} << 32));
}

TEST(Random, UniformCoversItsHalfOpenRange) {
  EXPECT_EQ(uniform(0), 0.0f);
  EXPECT_LT(uniform(0xffffffffu), 1.0f);
  Random random(5, Stream::init);
  double sum = 0, sum_double = 0;
  constexpr int kDraws = 100000;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.uniform(), y = random.uniform_double();
    ASSERT_TRUE(x >= 0 && x < 1 && y >= 0 && y < 1);
    sum += x;
    sum_double += y;
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.005);  // over 5 standard deviations
  EXPECT_NEAR(sum_double / kDraws, 0.5, 0.005);
}

TEST(Random, NormalHasTheMomentsOfTheStandardNormal) {
  Random random(11, Stream::init);
  constexpr int kDraws = 100000;
  double sum = 0, squares = 0, fourths = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    ASSERT_TRUE(std::isfinite(x));
    sum += x;
    squares += x * x;
    fourths += x * x * x * x;
  }
  EXPECT_NEAR(sum / kDraws, 0, 0.016);
  EXPECT_NEAR(squares / kDraws, 1, 0.023);
  EXPECT_NEAR(fourths / kDraws, 3, 0.16);
}

}  // namespace
}  // namespace fovea
