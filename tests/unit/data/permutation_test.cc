#include "data/permutation.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

namespace fovea::train {
namespace {

TEST(Permutation, VisitsEachIndexOnce) {
  for (const uint64_t count : {1, 2, 3, 4, 5, 7, 16, 17, 63, 64, 65, 1000, 4097}) {
    for (uint64_t key = 0; key < 5; ++key) {
      const Permutation order(count, key);
      std::vector<bool> seen(count);
      for (uint64_t i = 0; i < count; ++i) {
        const uint64_t at = order(i);
        ASSERT_LT(at, count);
        ASSERT_FALSE(seen[at]) << count << " " << key;
        seen[at] = true;
      }
    }
  }
}

TEST(Permutation, UsesConstantMemory) {
  const uint64_t count = (uint64_t{1} << 40) + 12345;
  const Permutation order(count, 7);
  std::set<uint64_t> seen;
  for (uint64_t i = count - 1000; i < count; ++i) seen.insert(order(i));
  EXPECT_EQ(seen.size(), 1000u);
  EXPECT_LT(*seen.rbegin(), count);
}

// Over many keys, each index is mapped to each position equally often: chi-squared is below its
// 99.97% quantile.
TEST(Permutation, IsUniformOverKeys) {
  constexpr uint64_t count = 5, keys = 20000;
  std::vector<double> hits(count * count);
  for (uint64_t key = 0; key < keys; ++key) {
    const Permutation order(count, key * 0x9E3779B97F4A7C15u);
    for (uint64_t i = 0; i < count; ++i) ++hits[i * count + order(i)];
  }
  const double expected = static_cast<double>(keys) / count;
  double chi_squared = 0;
  for (const double hit : hits) chi_squared += (hit - expected) * (hit - expected) / expected;
  EXPECT_LT(chi_squared, 42.9);  // (count - 1)^2 = 16 degrees of freedom
}

// Few neighbours remain adjacent, and the correlation of a large permutation with the identity is
// small.
TEST(Permutation, DoesNotResembleTheIdentity) {
  constexpr uint64_t count = 10000;
  const Permutation order(count, 1);
  const double mean = (count - 1) / 2.0;
  double covariance = 0, variance = 0, neighbours = 0;
  for (uint64_t i = 0; i < count; ++i) {
    covariance += (static_cast<double>(i) - mean) * (static_cast<double>(order(i)) - mean);
    variance += (static_cast<double>(i) - mean) * (static_cast<double>(i) - mean);
    if (i > 0 && order(i) == order(i - 1) + 1) ++neighbours;
  }
  EXPECT_LT(std::abs(covariance / variance), 0.04);  // four standard deviations of 1 / sqrt(count)
  EXPECT_LT(neighbours, 8);                          // one is expected
}

}  // namespace
}  // namespace fovea::train
