// Training with a loss of the caller (TrainOptions::loss).

#include <gtest/gtest.h>

#include "fovea/core/ops.h"
#include "support/expect_error.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

TEST(OwnLoss, TrainsLikeTheCrossEntropyThatItRepeats) {
  const Runs runs;
  TrainOptions options = runs.options("built_in");
  const TrainResult expected = train(small_spec(), options);
  options = runs.options("own");
  int calls = 0;
  options.loss = [&](const Tensor& logits, const Tensor& labels) {
    ++calls;
    EXPECT_EQ(logits.rank(), 2);
    EXPECT_EQ(labels.shape(), Shape{logits.dim(0)});
    return scale(sum(log_probability(logits, labels)), -1);
  };
  const TrainResult own = train(small_spec(), options);
  EXPECT_GE(calls, own.step);  // the plan may take steps too
  EXPECT_NEAR(own.best_loss, expected.best_loss, 1e-3);
  EXPECT_NEAR(own.loss, expected.loss, 1e-3);
}

TEST(OwnLoss, ChangesWhatIsLearned) {
  const Runs runs;
  TrainOptions options = runs.options("own");
  options.loss = [](const Tensor& logits, const Tensor&) { return scale(sum(logits), 0); };
  const TrainResult nothing = train(small_spec(), options);
  EXPECT_EQ(nothing.loss, 0);
  EXPECT_GT(nothing.best_loss, train(small_spec(), runs.options("built_in")).best_loss);
}

TEST(OwnLoss, IsRefusedWhereItHasNoMeaning) {
  const Runs runs;
  TrainOptions options = runs.options("refused");
  options.loss = [](const Tensor& logits, const Tensor&) { return logits; };
  expect_error(ErrorKind::InvalidArgument, {"loss", "expected [1]"},
               [&] { train(small_spec(), options); });
  options.label_smoothing = 0.1;
  expect_error(ErrorKind::InvalidArgument, {"loss", "label smoothing"},
               [&] { plan_training(small_spec(), options); });
  options.label_smoothing = 0;
  options.objective = Objective::skip_gram;
  expect_error(ErrorKind::InvalidArgument, {"loss", "skip_gram"},
               [&] { plan_training(small_spec(), options); });
}

}  // namespace
}  // namespace fovea::train
