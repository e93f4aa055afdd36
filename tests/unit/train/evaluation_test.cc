#include "train/evaluation.h"

#include <gtest/gtest.h>

#include <cmath>

#include "families/directory.h"
#include "tensor/tape.h"
#include "train/job.h"
#include "unit/train/runs.h"

namespace fovea {
namespace {

// The loss of one window by the definition, in double.
double plain_loss(const Transformer& model, const Tensor& ids, const Tensor& targets) {
  const NoGradient off;
  Pass pass;
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
  const Job job = prepare(small_spec(0.5f), runs.options("out"), true, [](const std::string&) {});
  constexpr int64_t kWindows = 7;
  const ValidationBatches windows(job.store->validation(), 16, kWindows);
  ASSERT_EQ(windows.windows(), kWindows);
  const auto fill = [&](int64_t first, int64_t count, int32_t* ids, int32_t* targets) {
    windows.fill(first, count, ids, targets);
  };
  double sum = 0;
  for (int64_t i = 0; i < kWindows; ++i) {
    const Tensor ids = empty({1, 16}, DType::i32), targets = empty({1, 16}, DType::i32);
    fill(i, 1, ids.data_as<int32_t>(), targets.data_as<int32_t>());
    sum += plain_loss(job.model, ids, targets);
  }
  for (const int64_t batch : {1, 3, 7, 100}) {  // also with a smaller last batch
    EXPECT_NEAR(mean_loss(job.model, DType::f32, kWindows, 16, batch, fill), sum / (kWindows * 16),
                1e-5)
        << "batch " << batch;
  }
}

TEST(EvaluationTest, BitsPerByteCountTheTextsBytes) {
  EXPECT_NEAR(bits_per_byte(std::log(2.0), 100, 100), 1, 1e-12);
  EXPECT_NEAR(bits_per_byte(std::log(2.0), 100, 200), 0.5, 1e-12);  // two bytes a token
  EXPECT_EQ(bits_per_byte(3, 0, 0), 0);
}

struct Course {
  std::vector<std::pair<int64_t, double>> losses;  // of the evaluations
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

// A run that gets worse after a while: random text, learnt by heart.
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
  const ModelFiles kept = open_model_files(o.out, Weights::owned);
  const TokenSpan& held_out = job.store->validation();
  const ValidationBatches windows(held_out, 16, o.evaluate_windows);
  const auto loss_of = [&](const Transformer& model) {
    return mean_loss(model, DType::f32, windows.windows(), 16, o.batch,
                     [&](int64_t first, int64_t count, int32_t* ids, int32_t* targets) {
                       windows.fill(first, count, ids, targets);
                     });
  };
  EXPECT_DOUBLE_EQ(loss_of(kept.model), best->second);
  EXPECT_GT(loss_of(job.model), best->second);  // the last weights are worse

  // Once it has stopped it stays so; more patience goes on.
  const TrainResult again = train(small_spec(), o);
  EXPECT_TRUE(again.stopped_early);
  EXPECT_EQ(again.step, course.result.step);
  o.patience = 0;
  EXPECT_EQ(train(small_spec(), o).step, o.steps);
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
}  // namespace fovea
