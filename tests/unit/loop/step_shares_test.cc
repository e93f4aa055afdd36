#include "loop/step_shares.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "kernels/sum_tree.h"

namespace fovea::train {
namespace {

using Shares = std::vector<std::vector<StepNode>>;

// Returns the sum of summands by their last index, as text that shows its order: "((0+1)+2)".
std::string sum_of(const std::vector<std::pair<int64_t, std::string>>& summands) {
  std::vector<std::string> held(65);
  const auto merge = [&](int slot) {
    const auto at = static_cast<size_t>(slot);
    held[at - 1] = "(" + held[at - 1] + "+" + held[at] + ")";
  };
  SumTree tree;
  for (const auto& [last, text] : summands)
    held[static_cast<size_t>(tree.next(last, merge))] = text;
  tree.finish(merge);
  return held[0];
}

// The sum in one process: units by the tree of a pass, passes by that of the step.
std::string sum_of_one(const std::vector<PassUnits>& passes) {
  std::vector<std::pair<int64_t, std::string>> sums;
  for (size_t p = 0; p < passes.size(); ++p) {
    std::vector<std::pair<int64_t, std::string>> units;
    for (int64_t u = 0; u < passes[p].count; ++u)
      units.emplace_back(u, std::to_string(p) + "." + std::to_string(u));
    sums.emplace_back(static_cast<int64_t>(p), sum_of(units));
  }
  return sum_of(sums);
}

// The sum over ranks: ranges in a node, then all nodes in the order of the ranks.
std::string sum_of_ranks(const Shares& shares) {
  std::vector<std::pair<int64_t, std::string>> nodes;
  for (const std::vector<StepNode>& of_rank : shares) {
    for (const StepNode& node : of_rank) {
      std::vector<std::pair<int64_t, std::string>> ranges;
      for (const UnitRange& range : node.ranges) {
        std::vector<std::pair<int64_t, std::string>> units;
        for (int64_t u = range.begin; u < range.end; ++u)
          units.emplace_back(u - range.begin, std::to_string(range.pass) + "." + std::to_string(u));
        ranges.emplace_back(range.last, sum_of(units));
      }
      nodes.emplace_back(node.last, sum_of(ranges));
    }
  }
  return sum_of(nodes);
}

TEST(StepShares, AddInTheOrderOfOneProcess) {
  for (const std::vector<PassUnits>& passes :
       std::vector<std::vector<PassUnits>>{{{1, 1}},
                                           {{8, 1}},
                                           {{5, 1}},
                                           {{12, 1}},
                                           {{64, 1}},
                                           {{6, 1}, {6, 1}, {6, 1}},
                                           {{8, 1}, {8, 1}},
                                           {{4, 3}, {8, 1}, {1, 20}},
                                           {{1, 1}, {1, 2}, {1, 3}, {1, 1}, {1, 1}}})
    for (int ranks = 1; ranks <= 9; ++ranks)
      EXPECT_EQ(sum_of_ranks(share_step(passes, ranks)), sum_of_one(passes)) << ranks << " ranks";
}

TEST(StepShares, APowerOfTwoOfRanksHasOneNodeEach) {
  for (const int ranks : {1, 2, 4, 8}) {
    const Shares shares = share_step({{16, 1}, {16, 1}}, ranks);
    for (const std::vector<StepNode>& of_rank : shares) {
      ASSERT_EQ(of_rank.size(), 1u);
      int64_t units = 0;
      for (const UnitRange& range : of_rank[0].ranges) units += range.end - range.begin;
      EXPECT_EQ(units, 32 / ranks);
    }
  }
}

TEST(StepShares, FollowTheCosts) {
  const Shares shares = share_step({{1, 6}, {1, 1}, {1, 1}, {1, 1}, {1, 1}, {1, 2}}, 2);
  ASSERT_EQ(shares[0].size(), 1u);
  EXPECT_EQ(shares[0][0].ranges.size(), 1u);
}

TEST(StepShares, MoreRanksThanUnitsLeaveSomeWithoutWork) {
  const Shares shares = share_step({{2, 1}}, 5);
  size_t nodes = 0;
  for (const std::vector<StepNode>& of_rank : shares) nodes += of_rank.size();
  EXPECT_EQ(shares.size(), 5u);
  EXPECT_EQ(nodes, 2u);
}

}  // namespace
}  // namespace fovea::train
