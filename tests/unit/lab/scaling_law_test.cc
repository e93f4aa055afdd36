#include "lab/scaling_law.h"

#include <gtest/gtest.h>

#include <cmath>

#include "fovea/core/random.h"
#include "fovea/train/plan.h"

namespace fovea {
namespace {

// Losses of a known law, with some noise.
std::vector<lab::LawPoint> law_points(double noise) {
  const lab::LawConstants law{1.2, 8, 0.3, 30, 0.4};
  std::vector<lab::LawPoint> points;
  Random random(3, Stream::sampling);
  for (double n = 1e3; n < 2e5; n *= 4)
    for (double d = 1e5; d < 1e7; d *= 3)
      points.push_back({n, d, law.loss(n, d) + noise * double{random.normal()}});
  return points;
}

TEST(ScalingLaws, FindTheConstantsOfExactLosses) {
  const lab::LawConstants law = lab::fit_law(law_points(0));
  EXPECT_NEAR(law.floor, 1.2, 0.02);
  EXPECT_NEAR(law.size_exponent, 0.3, 0.01);
  EXPECT_NEAR(law.data_exponent, 0.4, 0.01);
  EXPECT_NEAR(law.loss(1e6, 1e8), 1.2 + 8 / std::pow(1e6, 0.3) + 30 / std::pow(1e8, 0.4), 0.005);
}

TEST(ScalingLaws, ResamplesCoverTheTruth) {
  const std::vector<lab::LawPoint> points = law_points(0.005);
  const lab::LawConstants law = lab::fit_law(points);
  const auto resampled = lab::resampled_laws(points, 100, 1);
  const FittedNumber loss = lab::fitted(
      law, resampled, [](const lab::LawConstants& each) { return each.loss(3e5, 2e7); });
  const double truth = 1.2 + 8 / std::pow(3e5, 0.3) + 30 / std::pow(2e7, 0.4);
  EXPECT_LT(loss.low, truth);
  EXPECT_GT(loss.high, truth);
  EXPECT_LT(loss.high - loss.low, 0.1);
}

TEST(ScalingLaws, BestSizeIsTheMinimumOfTheLoss) {
  const lab::LawConstants law{1.2, 8, 0.3, 30, 0.4};
  const double flops = 1e15, best = law.best_size(flops);
  const auto at = [&](double n) { return law.loss(n, flops / 6 / n); };
  EXPECT_LT(at(best), at(1.1 * best));
  EXPECT_LT(at(best), at(best / 1.1));
}

// 5.76e23 FLOPs are those of Gopher: Hoffmann et al. 2022 trained Chinchilla with 70 billion
// parameters and 1.4 trillion tokens for them, and their third approach predicts 40 billion.
TEST(ScalingLaws, PlanABudgetAsPublished) {
  const train::BudgetPlan b = train::plan_budget(5.76e23);
  EXPECT_NEAR(b.parameters, 70e9, 1.5e9);
  EXPECT_NEAR(b.tokens, 1.4e12, 0.03e12);
  EXPECT_NEAR(b.fitted_parameters, 40e9, 9e9);
  EXPECT_LE(b.fitted_loss, b.loss);
  EXPECT_NEAR(12 * static_cast<double>(b.layers * b.width * b.width), b.parameters,
              0.05 * b.parameters);
  EXPECT_THROW(train::plan_budget(0), FieldError);
  EXPECT_DOUBLE_EQ(train::flops_of_hours(2, {.speed = 1e9, .utilisation = 0.5, .devices = 3}),
                   2 * 3600 * 1e9 * 0.5 * 3);
}

}  // namespace
}  // namespace fovea
