#include "data/skip_gram.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>

namespace fovea::train {
namespace {

std::vector<int32_t> cycle(int64_t count, int32_t tokens) {
  std::vector<int32_t> ids;
  for (int64_t i = 0; i < count; ++i) ids.push_back(static_cast<int32_t>(i) % tokens);
  return ids;
}

TEST(SkipGram, PairsEachTokenWithItsNeighbours) {
  const SkipGram pairs({.neighbours = 1, .negatives = 2, .subsampling = 0}, {1, 1, 1, 1});
  const std::vector<int32_t> ids = {0, 1, 2, 3};
  SkipGramPairs found;
  pairs.add_pairs(1, 0, ids.data(), 4, found);
  EXPECT_EQ(found.tokens, (std::vector<int32_t>{0, 1, 1, 2, 2, 3}));
  std::vector<int32_t> neighbours;
  for (size_t i = 0; i < found.others.size(); i += 3) {
    neighbours.push_back(found.others[i]);
    for (const size_t k : {1, 2}) EXPECT_NE(found.others[i + k], found.others[i]);
  }
  EXPECT_EQ(neighbours, (std::vector<int32_t>{1, 0, 2, 1, 3, 2}));
}

TEST(SkipGram, DrawsTheDistanceOfNeighbours) {
  const SkipGram pairs({.neighbours = 3, .negatives = 1, .subsampling = 0},
                       std::vector<int64_t>(1000, 1));
  const std::vector<int32_t> ids = cycle(1000, 1000);
  SkipGramPairs found;
  pairs.add_pairs(1, 0, ids.data(), 1000, found);
  std::map<int32_t, int> distances;
  for (size_t i = 0; i < found.tokens.size(); ++i)
    ++distances[std::abs(found.others[2 * i] - found.tokens[i])];
  // A distance d is reached with the probability (4 - d) / 3, on both sides.
  EXPECT_NEAR(distances[1], 1998, 5);
  EXPECT_NEAR(distances[2], 2 * 1000 * 2.0 / 3, 100);
  EXPECT_NEAR(distances[3], 2 * 1000 * 1.0 / 3, 100);
  EXPECT_EQ(distances.size(), 3u);
}

TEST(SkipGram, LeavesOutFrequentTokens) {
  // Token 0 has a frequency of 0.9; it stays with the probability sqrt(0.1 / 0.9) = 1/3.
  std::vector<int32_t> ids;
  for (int i = 0; i < 3000; ++i) ids.push_back(i % 10 == 0 ? 1 : 0);
  const SkipGram pairs({.neighbours = 1, .negatives = 1, .subsampling = 0.1}, {2700, 300});
  SkipGramPairs found;
  pairs.add_pairs(5, 0, ids.data(), 3000, found);
  // Of two neighbours, each token has one pair in both directions.
  const auto kept = static_cast<double>(found.tokens.size()) / 2 + 1;
  EXPECT_NEAR(kept, 300 + 900, 80);
}

TEST(SkipGram, DrawsOtherTokensByTheirCounts) {
  const std::vector<int64_t> counts = {0, 16, 1, 81};  // to the power of 3/4: 0, 8, 1, 27
  const SkipGram pairs({.neighbours = 1, .negatives = 20, .subsampling = 0}, counts);
  const std::vector<int32_t> ids(400, 0);  // token 0 is never drawn
  SkipGramPairs found;
  pairs.add_pairs(1, 0, ids.data(), 400, found);
  std::map<int32_t, double> drawn;
  for (size_t i = 0; i < found.others.size(); ++i)
    if (i % 21 != 0) ++drawn[found.others[i]];
  const auto all = static_cast<double>(found.tokens.size() * 20);
  EXPECT_EQ(drawn.count(0), 0u);
  EXPECT_NEAR(drawn[1] / all, 8.0 / 36, 0.01);
  EXPECT_NEAR(drawn[2] / all, 1.0 / 36, 0.01);
  EXPECT_NEAR(drawn[3] / all, 27.0 / 36, 0.01);
}

TEST(SkipGram, DependsOnTheSeedAndTheWindowOnly) {
  const SkipGram pairs({}, std::vector<int64_t>(20, 5));
  const std::vector<int32_t> ids = cycle(100, 20);
  const auto others = [&](uint64_t seed, int64_t window) {
    SkipGramPairs found;
    pairs.add_pairs(seed, window, ids.data(), 100, found);
    return found.others;
  };
  EXPECT_EQ(others(1, 2), others(1, 2));
  EXPECT_NE(others(1, 2), others(1, 3));
  EXPECT_NE(others(1, 2), others(2, 2));
}

// Every token is so frequent that it would be left out.
TEST(SkipGram, HasAPairInEveryWindow) {
  const SkipGram pairs({.subsampling = 1e-9}, {50, 50});
  const std::vector<int32_t> ids = cycle(10, 2);
  SkipGramPairs found;
  pairs.add_pairs(1, 0, ids.data(), 10, found);
  EXPECT_FALSE(found.tokens.empty());
}

}  // namespace
}  // namespace fovea::train
