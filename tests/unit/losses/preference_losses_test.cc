// The losses of preferences, compared with their definitions in double, and their gradients with
// differences.

#include "losses/preference_losses.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "ops/ops.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

using Numbers = std::vector<double>;
using Loss = std::function<Tensor(const Tensor& a, const Tensor& b)>;
using Definition = std::function<double(double a, double b)>;

double log_of_sigmoid(double x) { return -std::log1p(std::exp(-x)); }

Tensor tensor_of(const Numbers& numbers) {
  const Tensor x = empty({std::ssize(numbers)}, DType::f64);
  std::copy(numbers.begin(), numbers.end(), x.data_as<double>());
  return x;
}

// Numbers of the size of log-probabilities per token.
const Numbers kFirst = {-0.1, -2.5, -1.3, -4, -0.7}, kSecond = {-3, -0.4, -1.2, -5, -0.72};

void expect_definition(const Loss& loss, const Definition& definition) {
  const Tensor found = loss(tensor_of(kFirst), tensor_of(kSecond));
  for (size_t i = 0; i < kFirst.size(); ++i)
    EXPECT_NEAR(found.data_as<double>()[i], definition(kFirst[i], kSecond[i]), 1e-12) << i;
  const Tensor a = tensor_of(kFirst).want_gradient(), b = tensor_of(kSecond).want_gradient();
  backward(sum(loss(a, b)));
  constexpr double kStep = 1e-5;
  for (size_t i = 0; i < kFirst.size(); ++i) {
    const double x = kFirst[i], y = kSecond[i];
    const double da = (definition(x + kStep, y) - definition(x - kStep, y)) / (2 * kStep),
                 db = (definition(x, y + kStep) - definition(x, y - kStep)) / (2 * kStep);
    const auto gradient_at = [&](const Tensor& of) {
      return of.gradient() ? to_floats(of.gradient())[i] : 0;
    };
    EXPECT_NEAR(gradient_at(a), da, 1e-6) << i;
    EXPECT_NEAR(gradient_at(b), db, 1e-6) << i;
  }
}

TEST(PreferenceLosses, AreThoseOfRewardModels) {
  expect_definition(
      [](const Tensor& a, const Tensor& b) {
        return reward_losses(a, b, tensor_of(Numbers(kFirst.size(), 0.3)));
      },
      [](double a, double b) { return -log_of_sigmoid(a - b - 0.3); });
}

TEST(PreferenceLosses, AreThoseOfDpo) {
  for (const double beta : {0.1, 2.0}) {
    for (const double smoothing : {0.0, 0.2}) {
      expect_definition(
          [=](const Tensor& a, const Tensor& b) {
            return dpo_losses(subtract(a, b), PreferenceLoss::sigmoid, beta, smoothing);
          },
          [=](double a, double b) {
            return -(1 - smoothing) * log_of_sigmoid(beta * (a - b)) -
                   smoothing * log_of_sigmoid(-beta * (a - b));
          });
    }
    expect_definition(
        [=](const Tensor& a, const Tensor& b) {
          return dpo_losses(subtract(a, b), PreferenceLoss::hinge, beta, 0);
        },
        [=](double a, double b) { return std::max(0.0, 1 - beta * (a - b)); });
    expect_definition(
        [=](const Tensor& a, const Tensor& b) {
          return dpo_losses(subtract(a, b), PreferenceLoss::ipo, beta, 0);
        },
        [=](double a, double b) { return std::pow(a - b - 1 / (2 * beta), 2); });
  }
}

TEST(PreferenceLosses, AreThoseOfKto) {
  for (const double sign : {1.0, -1.0}) {
    const Tensor signs = tensor_of(Numbers(kFirst.size(), sign));
    expect_definition(
        [&](const Tensor& a, const Tensor&) { return kto_losses(a, signs, 0.4, {0.5, 1, 1}); },
        [=](double a, double) { return 1 - 1 / (1 + std::exp(-sign * 0.5 * (a - 0.4))); });
  }
  const Tensor even = kto_losses(tensor_of({1, 1}), tensor_of({1, -1}), 1, {0.1, 3, 0.5});
  EXPECT_DOUBLE_EQ(even.data_as<double>()[0], 1.5);
  EXPECT_DOUBLE_EQ(even.data_as<double>()[1], 0.25);
}

TEST(PreferenceLosses, AreThoseOfOrpoAndSimpo) {
  const auto log_odds = [](double a) { return a - std::log1p(-std::exp(a)); };
  expect_definition(
      [](const Tensor& a, const Tensor& b) { return orpo_losses(a, b, 0.7); },
      [&](double a, double b) { return -a - 0.7 * log_of_sigmoid(log_odds(a) - log_odds(b)); });
  expect_definition([](const Tensor& a, const Tensor& b) { return simpo_losses(a, b, 2, 0.5); },
                    [](double a, double b) { return -log_of_sigmoid(2 * (a - b) - 0.5); });
}

// An answer of probability 1, which a small model may learn, has infinite odds.
TEST(PreferenceLosses, AreFiniteForACertainAnswer) {
  const Tensor certain = tensor_of({0}).want_gradient(), other = tensor_of({-3}).want_gradient();
  const Tensor loss = sum(orpo_losses(certain, other, 0.1));
  EXPECT_TRUE(std::isfinite(number_of(loss)));
  backward(loss);
  EXPECT_TRUE(std::isfinite(to_floats(certain.gradient())[0]));
}

TEST(PreferenceLosses, BeginAtLogTwo) {
  const Tensor zero = tensor_of({0});
  EXPECT_DOUBLE_EQ(number_of(dpo_losses(zero, PreferenceLoss::sigmoid, 0.1, 0.3)),
                   std::numbers::ln2);
}

}  // namespace
}  // namespace fovea::train
