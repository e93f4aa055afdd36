#include <gtest/gtest.h>

#include <algorithm>

#include "support/runs.h"

namespace fovea::train {
namespace {

// The plan added a second copy of the weights to the activations, which are freed before files are
// written: 4.4 GB for a run that took 3.4 GB.
TEST(PlannedMemory, CountsACopyOfTheWeightsBeyondTheActivations) {
  const Runs runs;
  const model::Spec spec =
      test::small_decoder({.vocabulary = 0, .context = 16, .width = 512, .layers = 6});
  const auto planned = [&](int64_t batch) {
    TrainOptions o = runs.options("out");
    o.batch = batch;
    o.memory_limit = uint64_t{1} << 40;
    return plan_training(spec, o);
  };
  const TrainPlan small = planned(1), large = planned(128);
  const int64_t copy = small.parameters * int64_t{sizeof(float)};
  const auto activations = static_cast<int64_t>(small.activation_bytes);
  ASSERT_LT(activations, copy / 2);
  ASSERT_GT(static_cast<int64_t>(large.activation_bytes), copy);
  const int64_t more =
      static_cast<int64_t>(small.process_bytes) - static_cast<int64_t>(large.process_bytes);
  const auto expected = static_cast<double>(copy - activations);
  EXPECT_NEAR(static_cast<double>(more), expected, 0.25 * expected);
}

}  // namespace
}  // namespace fovea::train
