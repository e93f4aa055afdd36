#include "losses/policy_loss.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tensor/tape.h"

namespace fovea::train {
namespace {

Tensor numbers(const std::vector<float>& values) { return tensor_of(values, {std::ssize(values)}); }
float log_of(double x) { return static_cast<float>(std::log(x)); }

// Ratios of 1.5 and 0.5 with limits 0.8 to 1.3: a gain is limited, a loss is not.
TEST(PolicyLoss, IsClippedOnTheSideThatGains) {
  Tensor log_p = numbers({log_of(0.6), log_of(0.6), log_of(0.2), log_of(0.2)});
  log_p.want_gradient();
  const Tensor loss = policy_loss(log_p,
                                  {.old = numbers(std::vector<float>(4, log_of(0.4))),
                                   .advantages = numbers({1, -1, 1, -1}),
                                   .weights = numbers({1, 10, 100, 1000}),
                                   .reference = Tensor()},
                                  {.low = 0.2, .high = 0.3});
  EXPECT_NEAR(number_of(loss), -1.3 + 10 * 1.5 - 100 * 0.5 + 1000 * 0.8, 1e-3);
  backward(loss);
  const std::vector<float> found = to_floats(log_p.gradient());
  const std::vector<float> expected = {0, 15, -50, 0};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-3) << i;
}

// At the ratio 1 the gradient is -A, as that of REINFORCE, and k3 is 0 where policy and reference
// agree.
TEST(PolicyLoss, BeginsAsThePolicyGradient) {
  Tensor log_p = numbers({-1, -2});
  log_p.want_gradient();
  const Tensor loss = policy_loss(log_p,
                                  {.old = numbers({-1, -2}),
                                   .advantages = numbers({3, -4}),
                                   .weights = numbers({0.5, 0.5}),
                                   .reference = numbers({-1, -2})},
                                  {.kl_weight = 0.7});
  EXPECT_EQ(number_of(loss), 0.5);
  backward(loss);
  EXPECT_EQ(to_floats(log_p.gradient()), (std::vector<float>{-1.5, 2}));
}

TEST(ValueLoss, TakesTheLargerOfTheClippedAndTheOtherError) {
  Tensor values = numbers({2, 0.9f, 0.5f});
  values.want_gradient();
  // Limited to 1.2, 1.1 and 0.8: the errors are 1 or 1.8, -0.1 or 0.1, and 0.5 or 0.8.
  const Tensor loss = value_loss(
      values,
      {.old = numbers({1, 1.3f, 1}), .returns = numbers({3, 1, 0}), .weights = numbers({1, 1, 1})},
      0.2);
  EXPECT_NEAR(number_of(loss), 0.5 * (1.8 * 1.8 + 0.1 * 0.1 + 0.8 * 0.8), 1e-5);
  backward(loss);
  const std::vector<float> found = to_floats(values.gradient());
  EXPECT_EQ(found[0], 0);  // the clipped error, which does not depend on the value
  EXPECT_EQ(found[2], 0);
}

}  // namespace
}  // namespace fovea::train
