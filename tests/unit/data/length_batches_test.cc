#include "data/length_batches.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "fovea/core/random.h"

namespace fovea::train {
namespace {

std::vector<LengthBatches::Lengths> lengths_of(int count) {
  std::vector<LengthBatches::Lengths> lengths;
  for (int i = 0; i < count; ++i) {
    const auto words = philox(5, Stream::shuffle, 3, static_cast<uint64_t>(i));
    const auto target = static_cast<int32_t>(1 + words[0] % 40);
    lengths.push_back({static_cast<int32_t>(std::max(1u, target + words[1] % 7)), target});
  }
  return lengths;
}

int64_t longest(const std::vector<LengthBatches::Lengths>& lengths,
                const std::vector<int64_t>& samples) {
  int32_t most = 0;
  for (const int64_t i : samples) {
    const auto& l = lengths[static_cast<size_t>(i)];
    most = std::max({most, l[0], l[1]});
  }
  return most;
}

TEST(LengthBatches, VisitEachSampleOncePerEpochWithinTheBudget) {
  const auto lengths = lengths_of(2000);
  const LengthBatches batches(lengths, 256, 0, 1);
  for (int64_t epoch = 0; epoch < 3; ++epoch) {
    std::multiset<int64_t> seen;
    for (int64_t n = 0; n < batches.batches(); ++n) {
      const auto samples = batches(epoch * batches.batches() + n);
      EXPECT_LE(longest(lengths, samples) * std::ssize(samples), 256);
      seen.insert(samples.begin(), samples.end());
    }
    EXPECT_EQ(seen.size(), lengths.size());
    EXPECT_EQ(std::set<int64_t>(seen.begin(), seen.end()).size(), lengths.size());
  }
}

TEST(LengthBatches, HaveLittlePadding) {
  const auto lengths = lengths_of(20000);
  const LengthBatches batches(lengths, 2048, 0, 1);
  int64_t tokens = 0, padded = 0;
  for (int64_t n = 0; n < batches.batches(); ++n) {
    const auto samples = batches(n);
    int32_t target = 0, source = 0;
    for (const int64_t i : samples) {
      const auto& l = lengths[static_cast<size_t>(i)];
      tokens += l[0] + l[1];
      source = std::max(source, l[0]);
      target = std::max(target, l[1]);
    }
    padded += std::ssize(samples) * (source + target);
  }
  EXPECT_LT(static_cast<double>(padded), 1.08 * static_cast<double>(tokens));
}

TEST(LengthBatches, DependOnlyOnSeedAndIndex) {
  const auto lengths = lengths_of(500);
  const LengthBatches one(lengths, 128, 0, 1), same(lengths, 128, 0, 1), other(lengths, 128, 0, 2);
  int differing = 0;
  for (const int64_t n : {40, 3, 7, 100, 0}) {
    EXPECT_EQ(one(n), same(n));
    differing += one(n) != other(n);
    differing += one(n) != one(n + one.batches());  // each epoch has a different order
  }
  EXPECT_GE(differing, 8);
}

TEST(LengthBatches, RespectTheMinimumAndMaximumOfSamples) {
  const LengthBatches wide({{100, 90}, {3, 3}, {100, 100}}, 10, 0, 1);
  EXPECT_EQ(wide.batches(), 3);
  const LengthBatches few(lengths_of(100), 100000, 7, 1);
  for (int64_t n = 0; n < few.batches(); ++n) EXPECT_LE(few(n).size(), 7u);
  EXPECT_EQ(few.batches(), 15);
}

}  // namespace
}  // namespace fovea::train
