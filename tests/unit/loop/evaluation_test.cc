#include "loop/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "open/directory.h"
#include "start/prepare.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// Returns the sum of the losses of the tokens of one window by the definition, in double.
double plain_loss(const model::Transformer& model, const Tensor& ids, const Tensor& targets) {
  const NoGradient off;
  model::Pass pass;
  pass.mask.causal = true;
  const std::vector<float> logits = to_floats(model.logits(model.hidden(ids, pass)));
  const int64_t V = model.spec.vocabulary;
  double sum = 0;
  for (int64_t t = 0; t < ids.size(); ++t) {
    double total = 0;
    for (int64_t v = 0; v < V; ++v) total += std::exp(double{logits[size_t(t * V + v)]});
    sum += std::log(total) - double{logits[size_t(t * V + targets.data_as<int32_t>()[t])]};
  }
  return sum;
}

TEST(EvaluationTest, IsTheMeanOverAllTokens) {
  const Runs runs;
  constexpr int64_t kWindows = 7;
  double sum = 0;
  for (const int64_t batch : {1, 3, 7, 100}) {  // also with a smaller last batch
    TrainOptions o = runs.options("out");
    o.batch = batch;
    o.evaluate_windows = kWindows;
    const Job job = prepare(small_spec(0.5f), o, true, [](const std::string&) {});
    if (batch == 1) {
      ASSERT_EQ(examples_of(job).validation_batches(), kWindows);
      for (int64_t i = 0; i < kWindows; ++i) {
        const Batch window = examples_of(job).validation(i);
        sum += plain_loss(job.model, window.target.ids, window.labels);
      }
    }
    const infer::Predictions found =
        predict(job.model, DType::f32, job.task->evaluation(), examples_of(job));
    EXPECT_EQ(found.labels, kWindows * 16);
    EXPECT_NEAR(found.loss, sum / (kWindows * 16), 1e-5) << "batch " << batch;
  }
}

struct Course {
  std::vector<std::pair<int64_t, double>> losses;  // step and loss of each evaluation
  TrainResult result;
};

Course follow(const TrainOptions& options) {
  Course course;
  course.result = train(small_spec(), options, {}, [&](const TrainProgress& progress) {
    if (progress.step % options.evaluate_every == 0)
      course.losses.emplace_back(progress.step, progress.validation_loss.value());
    return true;
  });
  return course;
}

// Returns the options of a run whose validation loss increases after a while, since the model
// memorises a random text.
TrainOptions overfitting(const Runs& runs) {
  std::string noise;
  for (uint64_t i = 0; i < 400; ++i)
    noise += static_cast<char>('a' + philox(3, Stream::shuffle, 2, i)[0] % 8);
  write_file_atomically(runs / "noise.txt", noise);
  TrainOptions o = runs.options("out");
  o.data = {runs / "noise.txt"};
  o.validation = 0.25;
  o.steps = 200;
  o.evaluate_every = 10;
  o.learning_rate = 2e-2;
  return o;
}

TEST(EvaluationTest, StopsWithoutImprovementAndKeepsTheBest) {
  const Runs runs;
  TrainOptions o = overfitting(runs);
  o.patience = 3;
  const Course course = follow(o);
  EXPECT_TRUE(course.result.stopped_early);
  EXPECT_LT(course.result.step, o.steps);
  const auto best = std::min_element(
      course.losses.begin(), course.losses.end(),
      [](const auto& one, const auto& other) { return one.second < other.second; });
  EXPECT_EQ(course.losses.end() - best, o.patience + 1);
  EXPECT_DOUBLE_EQ(course.result.best_loss, best->second);

  // The weights in the directory are those of the best evaluation.
  const Job job = prepare(small_spec(), o, true, [](const std::string&) {});
  const model::ModelFiles kept = model::open_model_files(o.out, model::Weights::owned);
  const auto loss_of = [&](const model::Transformer& model) {
    return predict(model, DType::f32, job.task->evaluation(), examples_of(job)).loss;
  };
  EXPECT_DOUBLE_EQ(loss_of(kept.model), best->second);
  EXPECT_GT(loss_of(job.model), best->second);  // the last weights are worse

  // A run that stopped early stays stopped; without a patience (0), it continues to the end.
  const TrainResult again = train(small_spec(), o);
  EXPECT_TRUE(again.stopped_early);
  EXPECT_EQ(again.step, course.result.step);
  o.patience = 0;
  EXPECT_EQ(train(small_spec(), o).step, o.steps);
}

TEST(EvaluationTest, SamplesAreGeneratedAtTheirStepsAndAtTheEnd) {
  const Runs runs;
  TrainOptions o = runs.options("out");
  o.sample_tokens = 5;
  const auto steps_with_samples = [&](int64_t every) {
    o.out = runs / ("every" + std::to_string(every));
    o.sample_every = every;
    std::vector<int64_t> steps;
    train(small_spec(), o, {}, [&](const TrainProgress& progress) {
      if (!progress.sample.empty()) steps.push_back(progress.step);
      return true;
    });
    return steps;
  };
  EXPECT_EQ(steps_with_samples(0), std::vector<int64_t>());
  EXPECT_EQ(steps_with_samples(8), (std::vector<int64_t>{8, 16, 20}));
  EXPECT_EQ(steps_with_samples(100), std::vector<int64_t>{20});
}

TEST(EvaluationTest, DoesNotChangeTheTraining) {
  const Runs runs;
  TrainOptions often = runs.options("often"), never = runs.options("never");
  often.evaluate_every = often.save_every = 1;
  often.sample_every = 2;
  often.sample_tokens = 5;
  train(small_spec(0.1f), often);
  train(small_spec(0.1f), never);
  EXPECT_EQ(state_bytes(often, 20), state_bytes(never, 20));
}

}  // namespace
}  // namespace fovea::train
