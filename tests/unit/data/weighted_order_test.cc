#include "data/weighted_order.h"

#include <gtest/gtest.h>

#include <map>

#include "support/expect_error.h"

namespace fovea::train {
namespace {

WeightedItems items(std::vector<WeightedGroup> groups, uint64_t seed = 1) {
  return {std::move(groups), [seed](int64_t epoch, size_t which) {
            return seed + static_cast<uint64_t>(epoch) + (uint64_t{which} << 40);
          }};
}

TEST(WeightedItems, AreInEachEpochAsOftenAsTheirWeightSays) {
  const WeightedItems all = items({{0, 4, 2}, {4, 10, 0.5}, {10, 10, 3}, {10, 11, 1}});
  ASSERT_EQ(all.per_epoch(), 8 + 3 + 1);
  std::vector<std::map<int64_t, int>> epochs(3);
  for (int64_t i = 0; i < 3 * all.per_epoch(); ++i)
    ++epochs[static_cast<size_t>(i / all.per_epoch())][all[i]];
  for (const auto& counts : epochs) {
    int drawn = 0;
    for (const auto& [item, count] : counts) {
      if (item < 4) {
        EXPECT_EQ(count, 2) << item;
      } else if (item < 10) {
        EXPECT_EQ(count, 1) << item;
        ++drawn;
      }
    }
    EXPECT_EQ(drawn, 3);
    EXPECT_EQ(counts.at(10), 1);
  }
  EXPECT_NE(epochs[0], epochs[1]);  // others are drawn
}

// An item depends on its number only, not on those that were read before.
TEST(WeightedItems, DoNotDependOnTheOrderOfReading) {
  const WeightedItems one = items({{0, 7, 1.3}}), other = items({{0, 7, 1.3}});
  std::vector<int64_t> forward, backward;
  for (int64_t i = 0; i < 30; ++i) forward.push_back(one[i]);
  for (int64_t i = 30; i-- > 0;) backward.insert(backward.begin(), other[i]);
  EXPECT_EQ(forward, backward);
}

TEST(WeightedItems, NeedAnItem) {
  expect_error(ErrorKind::InvalidArgument, {"data: an epoch contains no text"},
               [] { items({{0, 1, 0.1}}); });
}

}  // namespace
}  // namespace fovea::train
