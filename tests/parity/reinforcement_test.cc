// Compares advantages, returns and losses with those of PyTorch (fixtures/align/reinforcement.json;
// its note has the definitions).

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "losses/advantages.h"
#include "losses/policy_loss.h"
#include "support/shared_folder.h"

namespace fovea {
namespace {

constexpr double kFixtureTolerance = 1e-5;

using Matrix = std::vector<std::vector<double>>;

class Reinforcement : public testing::Test {
 protected:
  void SetUp() override {
    const std::string path = shared("fixtures/align/reinforcement.json");
    if (!std::filesystem::exists(path)) GTEST_SKIP() << "needs " << path;
    json_ = read_json(path);
  }

  double number(const char* name) const { return json_[name].get<double>(); }
  std::vector<double> numbers(const char* name) const { return json_[name]; }
  Matrix matrix(const char* name) const { return json_[name]; }
  // The elements of a matrix whose mask is 1, row by row.
  std::vector<double> masked(const Matrix& all) const {
    std::vector<double> found;
    const Matrix mask = matrix("mask");
    for (size_t r = 0; r < all.size(); ++r)
      for (size_t t = 0; t < all[r].size(); ++t)
        if (mask[r][t] != 0) found.push_back(all[r][t]);
    return found;
  }
  std::vector<double> masked(const char* name) const { return masked(matrix(name)); }
  static Tensor tensor(const std::vector<double>& values) {
    return tensor_of(std::vector<float>(values.begin(), values.end()), {std::ssize(values)});
  }
  // One value for each token of an answer, repeated.
  std::vector<double> repeated(const std::vector<double>& by_answer) const {
    Matrix all = matrix("mask");
    for (size_t r = 0; r < all.size(); ++r) all[r].assign(all[r].size(), by_answer[r]);
    return masked(all);
  }
  std::vector<int64_t> lengths() const {
    std::vector<int64_t> found;
    for (const auto& row : matrix("mask")) found.push_back(std::count(row.begin(), row.end(), 1.0));
    return found;
  }

  static void expect_alike(double found, double expected) {
    EXPECT_LE(std::abs(found - expected), kFixtureTolerance * std::abs(expected));
  }
  static void expect_alike(const std::vector<double>& found, const std::vector<double>& expected) {
    ASSERT_EQ(found.size(), expected.size());
    double most = 0;
    for (const double value : expected) most = std::max(most, std::abs(value));
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_LE(std::abs(found[i] - expected[i]), kFixtureTolerance * most) << i;
  }
  double grpo_loss(const char* advantages, const std::vector<double>& weights) const {
    return number_of(
        train::policy_loss(tensor(masked("new_logp")),
                           {tensor(masked("old_logp")), tensor(repeated(numbers(advantages))),
                            tensor(weights), tensor(masked("reference_logp"))},
                           {number("epsilon"), number("epsilon"), 0.04}));
  }

  nlohmann::json json_;
};

TEST_F(Reinforcement, AdvantagesOfTokensMatch) {
  const Matrix rewards = matrix("rewards"), values = matrix("values"),
               expected = matrix("advantages"), returns = matrix("returns");
  std::vector<double> all;
  for (size_t r = 0; r < rewards.size(); ++r) {
    const auto T = static_cast<size_t>(lengths()[r]);
    const std::vector<double> found =
        train::generalised_advantages(std::span(rewards[r]).first(T), std::span(values[r]).first(T),
                                      number("gamma"), number("lam"));
    expect_alike(found, {expected[r].begin(), expected[r].begin() + static_cast<int64_t>(T)});
    std::vector<double> sums(found);
    for (size_t t = 0; t < T; ++t) sums[t] += values[r][t];
    expect_alike(sums, {returns[r].begin(), returns[r].begin() + static_cast<int64_t>(T)});
    all.insert(all.end(), found.begin(), found.end());
  }
  train::whiten(all);
  expect_alike(all, masked("whitened"));
}

TEST_F(Reinforcement, AdvantagesOfGroupsMatch) {
  const std::vector<double> rewards = numbers("group_rewards");
  expect_alike(train::group_advantages(rewards, 3, train::AdvantageKind::grpo),
               numbers("grpo_advantages"));
  expect_alike(train::group_advantages(rewards, 3, train::AdvantageKind::dr_grpo),
               numbers("dr_grpo_advantages"));
  expect_alike(train::group_advantages(rewards, 3, train::AdvantageKind::rloo),
               numbers("rloo_advantages"));
}

TEST_F(Reinforcement, LossesMatch) {
  const auto count = masked("mask").size();
  const std::vector<double> mean(count, 1 / static_cast<double>(count));
  const double epsilon = number("epsilon");
  expect_alike(number_of(train::policy_loss(
                   tensor(masked("new_logp")),
                   {tensor(masked("old_logp")), tensor(masked("whitened")), tensor(mean), Tensor()},
                   {epsilon, epsilon, 0})),
               number("ppo_policy_loss"));
  expect_alike(number_of(train::value_loss(
                   tensor(masked("new_values")),
                   {tensor(masked("values")), tensor(masked("returns")), tensor(mean)}, epsilon)),
               number("ppo_value_loss"));
  const std::vector<float> k3 =
      to_floats(train::k3_divergence(tensor(masked("new_logp")), tensor(masked("reference_logp"))));
  expect_alike({k3.begin(), k3.end()}, masked("k3"));
  expect_alike(grpo_loss("grpo_advantages", mean), number("loss_dapo"));
  std::vector<double> by_answer, constant;
  for (const int64_t length : lengths()) {
    by_answer.push_back(1 / static_cast<double>(length * 6));
    constant.push_back(1.0 / (6 * 9));
  }
  expect_alike(grpo_loss("grpo_advantages", repeated(by_answer)), number("loss_grpo"));
  expect_alike(grpo_loss("dr_grpo_advantages", repeated(constant)), number("loss_dr_grpo"));
}

}  // namespace
}  // namespace fovea
