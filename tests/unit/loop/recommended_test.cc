#include "loop/recommended.h"

#include <gtest/gtest.h>

#include "optim/schedule.h"
#include "support/expect_error.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

TEST(RecommendedRates, DependOnTheObjectiveAndOnWhatIsTrained) {
  const double scratch = recommended(Objective::next_token, TrainedPart::new_model).rate;
  EXPECT_EQ(scratch, 1e-3);
  for (int i = static_cast<int>(Objective::next_token); i < static_cast<int>(Objective::skip_gram);
       ++i) {
    const auto objective = static_cast<Objective>(i);
    const double all = recommended_rate(objective, false),
                 adapters = recommended_rate(objective, true);
    EXPECT_LE(all, 5e-5) << i;
    EXPECT_GE(adapters, 4 * all) << i;
    EXPECT_LE(adapters, 2e-4) << i;
  }
  EXPECT_EQ(recommended_rate(Objective::chats, false), 2e-5);
  EXPECT_EQ(recommended_rate(Objective::chats, true), 2e-4);
  EXPECT_EQ(recommended_rate(Objective::dpo, false), 1e-6);
  EXPECT_EQ(recommended_rate(Objective::dpo, true), 2e-5);
}

TrainPlan plan_of(const TrainOptions& options) { return plan_training(small_spec(), options); }

TEST(RecommendedRates, AreToldInThePlan) {
  const Runs runs;
  TrainOptions first = runs.options("base");
  first.learning_rate = 3e-3;
  const TrainPlan given = plan_of(first);
  EXPECT_EQ(given.learning_rate, 3e-3);
  EXPECT_EQ(given.rate_reason, "");
  EXPECT_EQ(given.length_reason, "");
  first.learning_rate = TrainOptions().learning_rate;
  first.steps = 0;
  const TrainPlan scratch = plan_of(first);
  EXPECT_EQ(scratch.learning_rate, 1e-3);
  EXPECT_EQ(scratch.steps, 2000);
  EXPECT_EQ(scratch.rate_reason, "training from random weights");
  first.steps = 2;
  train(small_spec(), first);
  TrainOptions tuning = runs.options("out");
  tuning.from = first.out;
  tuning.steps = 0;
  tuning.warmup = -1;
  const TrainPlan all = plan_of(tuning);
  EXPECT_EQ(all.learning_rate, 2e-5);
  EXPECT_EQ(all.rate_reason, "fine-tuning of all weights on text");
  EXPECT_NEAR(all.epochs, 3, 0.2);
  EXPECT_EQ(all.schedule, "cosine");
  EXPECT_EQ(all.warmup, all.steps / 20);
  tuning.lora.rank = 2;
  const TrainPlan adapters = plan_of(tuning);
  EXPECT_EQ(adapters.learning_rate, 2e-4);
  EXPECT_EQ(adapters.rate_reason, "fine-tuning of adapters on text");
  tuning.learning_rate = -0.5;
  expect_error(ErrorKind::InvalidArgument, {"learning_rate: -0.5; expected 0 to 1000"},
               [&] { plan_of(tuning); });
}

TEST(RecommendedRates, StayTheSameInAResumedRun) {
  const Runs runs;
  TrainOptions options = runs.options("out");
  options.learning_rate = 5e-4;
  train(small_spec(), options, {}, stop_after(8));
  options.learning_rate = TrainOptions().learning_rate;
  options.steps = 0;
  const TrainPlan plan = plan_of(options);
  EXPECT_EQ(plan.learning_rate, 5e-4);
  EXPECT_EQ(plan.steps, 20);
  EXPECT_EQ(plan.first_step, 8);
}

// transformers' Trainer counts ceil(batches / accumulation) steps in an epoch, the last of which
// has the batches that are left. A step of fovea also took those of the next epoch.
TEST(Epochs, EndWithAStep) {
  TrainOptions o;
  o.accumulate = 2;
  o.epochs = 3;
  const Growth passes = passes_of(o, 5);
  std::vector<int64_t> taken, before;
  for (int64_t step = 0; step < 9; ++step) {
    taken.push_back(passes.at(step));
    before.push_back(passes.sum(step));
  }
  EXPECT_EQ(taken, (std::vector<int64_t>{2, 2, 1, 2, 2, 1, 2, 2, 1}));
  EXPECT_EQ(before, (std::vector<int64_t>{0, 2, 4, 5, 7, 9, 10, 12, 14}));
  EXPECT_NEAR(mean_passes(o, 5), 5.0 / 3, 1e-12);
  // Rows of text continue across epochs, so that only the run ends with its last pass: 7.5 passes.
  const Growth rows = passes_of(o, 2.5);
  EXPECT_EQ(rows.sum(4), 8);
  o.epochs = 1;
  EXPECT_EQ(passes_of(o, 2.5).at(1), 1);
  o.epochs = 0;
  EXPECT_EQ(passes_of(o, 5).at(2), 2) << "a number of steps is given";
}

TEST(Epochs, ReadEachLabelledTextOnce) {
  const Runs runs;
  std::string lines;
  for (int i = 0; i < 10; ++i) lines += fmt::format("text {}\t{}\n", i, i % 2 == 0 ? "a" : "b");
  write_file_atomically(runs / "labels.tsv", lines);
  TrainOptions o = runs.options("out");
  o.data = {};
  o.labels = {runs / "labels.tsv"};
  o.validation = 0;
  o.batch = 2;
  o.accumulate = 2;
  o.steps = 0;
  o.epochs = 2;
  o.warmup = 0;
  std::vector<int64_t> tokens;
  const TrainResult done = train(small_spec(), o, {}, [&](const TrainProgress& p) {
    tokens.push_back(p.tokens);
    return true;
  });
  EXPECT_EQ(done.step, 6);
  ASSERT_EQ(tokens.size(), 6u);
  EXPECT_EQ(tokens[5], 2 * tokens[2]) << "both epochs read the same texts";
}

}  // namespace
}  // namespace fovea::train
