#include "kernels/sum_tree.h"

#include <gtest/gtest.h>

#include "fovea/core/random.h"
#include "unit/kernels/units.h"

namespace fovea {
namespace {

using Numbers = std::vector<std::optional<float>>;

// Returns numbers whose sum depends on the order of addition. Each number is present with the
// probability `present`.
Numbers random_numbers(int64_t count, double present) {
  Random random(static_cast<uint64_t>(count), Stream::init);
  Numbers numbers;
  for (int64_t i = 0; i < count; ++i) {
    numbers.emplace_back();
    const float number = random.normal();
    if (random.uniform() < present) numbers.back() = number;
  }
  return numbers;
}

// `complete`: nodes are merged as soon as they are complete.
float sum_by_tree(const Numbers& numbers, bool complete = false) {
  const int64_t count = std::ssize(numbers);
  const int slots = complete ? SumTree::slots_if_merged(count) + 1 : SumTree::slots(count);
  std::vector<float> sums(static_cast<size_t>(slots));
  const auto merge = [&](int slot) {
    sums.at(static_cast<size_t>(slot) - 1) += sums.at(static_cast<size_t>(slot));
  };
  SumTree tree;
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (!numbers[i]) continue;
    const int slot = tree.next(static_cast<int64_t>(i), merge);
    sums.at(static_cast<size_t>(slot)) = *numbers[i];
    if (complete) tree.merge_complete(merge);
    EXPECT_TRUE(!complete || tree.last() < SumTree::slots_if_merged(count));
  }
  return tree.finish(merge) ? sums[0] : 0;
}

TEST(SumTree, AddsTheHalvesOfABalancedTree) {
  for (int64_t count = 0; count <= 70; ++count) {
    for (const double present : {1.0, 0.5, 0.1}) {
      const Numbers numbers = random_numbers(count, present);
      EXPECT_EQ(sum_by_tree(numbers), test::tree_sum(numbers)) << count << " " << present;
      EXPECT_EQ(sum_by_tree(numbers, true), test::tree_sum(numbers)) << count << " " << present;
    }
  }
}

// Merges each sum immediately, as matrix products do while a unit's sum is in registers.
float sum_merged_immediately(const Numbers& numbers) {
  std::vector<int64_t> present;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i]) present.push_back(static_cast<int64_t>(i));
  std::vector<float> sums(65);
  SumTree tree;
  const auto none = [](int) { ADD_FAILURE() << "a merge remains"; };
  for (size_t i = 0; i < present.size(); ++i) {
    auto slot = static_cast<size_t>(tree.next(present[i], none));
    float sum = *numbers[static_cast<size_t>(present[i])];
    const int merges =
        i + 1 < present.size() ? tree.merges_before(present[i + 1]) : tree.merges_at_end();
    for (int merge = 0; merge < merges; ++merge) sum = sums.at(--slot) + sum;
    sums.at(slot) = sum;
    tree.merged(merges);
  }
  return tree.finish(none) ? sums[0] : 0;
}

TEST(SumTree, CanBeMergedImmediately) {
  for (int64_t count = 0; count <= 70; ++count) {
    for (const double present : {1.0, 0.5, 0.1}) {
      const Numbers numbers = random_numbers(count, present);
      EXPECT_EQ(sum_merged_immediately(numbers), sum_by_tree(numbers)) << count << " " << present;
    }
  }
}

TEST(SumTree, CombinesPartsThatArePowersOfTwo) {
  for (int64_t count = 1; count <= 64; ++count) {
    const Numbers numbers = random_numbers(count, 0.8);
    for (const int64_t part : {1, 2, 4, 8, 16}) {
      Numbers sums;
      for (int64_t begin = 0; begin < count; begin += part)
        sums.emplace_back(sum_by_tree(
            Numbers(numbers.begin() + begin, numbers.begin() + std::min(count, begin + part))));
      EXPECT_EQ(sum_by_tree(sums), sum_by_tree(numbers)) << count << " in parts of " << part;
    }
  }
}

}  // namespace
}  // namespace fovea
