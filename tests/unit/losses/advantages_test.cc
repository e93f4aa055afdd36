#include "losses/advantages.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/expect_error.h"

namespace fovea::train {
namespace {

void expect_near(const std::vector<double>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-12) << i;
}

// By hand: d = r + gamma V' - V = {1 + 0.5 * 2 - 1, 3 - 2} = {1, 1}; A = {1 + 0.25 * 1, 1}.
TEST(Advantages, OfTokensFollowTheRecursion) {
  const std::vector<double> rewards = {1, 3}, values = {1, 2};
  expect_near(generalised_advantages(rewards, values, 0.5, 0.5), {1.25, 1});
  // lambda 1: the discounted sum of rewards minus the value; lambda 0: the errors.
  expect_near(generalised_advantages(rewards, values, 0.5, 1), {1 + 0.5 * 3 - 1, 1});
  expect_near(generalised_advantages(rewards, values, 0.5, 0), {1, 1});
  EXPECT_TRUE(generalised_advantages({}, {}, 1, 1).empty());
}

TEST(Advantages, AreWhitenedWithTheUnbiasedVariance) {
  std::vector<double> values = {1, 2, 3};
  whiten(values);
  expect_near(values, {-1 / std::sqrt(1 + 1e-8), 0, 1 / std::sqrt(1 + 1e-8)});
  std::vector<double> one = {5}, equal = {2, 2};
  whiten(one);
  whiten(equal);
  expect_near(one, {5});
  expect_near(equal, {0, 0});
}

TEST(Advantages, OfGroupsCompareTheAnswersToOnePrompt) {
  const std::vector<double> rewards = {1, 0, 4, 4};
  const double deviation = std::sqrt(0.5);
  expect_near(group_advantages(rewards, 2, AdvantageKind::grpo),
              {0.5 / (deviation + 1e-4), -0.5 / (deviation + 1e-4), 0, 0});
  expect_near(group_advantages(rewards, 2, AdvantageKind::dr_grpo), {0.5, -0.5, 0, 0});
  expect_near(group_advantages(rewards, 2, AdvantageKind::rloo), {1, -1, 0, 0});
  expect_near(group_advantages(rewards, 1, AdvantageKind::rloo), {1, 0, 4, 4});
  expect_error(ErrorKind::InvalidArgument, {"4 rewards in groups of 3"},
               [&] { group_advantages(rewards, 3, AdvantageKind::grpo); });
}

TEST(Advantages, TheWeightOfTheDivergenceFollowsItsTarget) {
  EXPECT_DOUBLE_EQ(adapted_kl_weight(0.1, 6, 6, 64, 1000), 0.1);
  EXPECT_DOUBLE_EQ(adapted_kl_weight(0.1, 60, 6, 64, 1000), 0.1 * (1 + 0.2 * 0.064));
  EXPECT_DOUBLE_EQ(adapted_kl_weight(0.1, 0, 6, 64, 1000), 0.1 * (1 - 0.2 * 0.064));
}

}  // namespace
}  // namespace fovea::train
