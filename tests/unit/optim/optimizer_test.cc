#include "loop/stepper.h"

#include <gtest/gtest.h>

#include <cmath>

#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

TrainOptions schedule(Schedule kind) {
  TrainOptions o;
  o.schedule = kind;
  o.steps = 100;
  o.warmup = 9;
  o.learning_rate = 1e-2;
  o.final_rate = 0.1;
  return o;
}

TEST(LearningRate, WarmsUpAndFollowsTheCosine) {
  const TrainOptions o = schedule(Schedule::cosine);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 0),
                   1e-3);  // the first step already changes the weights
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 8), 9e-3);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 9), 1e-2);  // the peak
  EXPECT_LT(learning_rate(rate_schedule(o), 10), 1e-2);
  EXPECT_NEAR(learning_rate(rate_schedule(o), 99), 1e-3, 5e-6);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 100), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 1000), 1e-3);  // the rate stays at its minimum
}

TEST(LearningRate, AllowsAWarmUpOfZeroSteps) {
  for (const Schedule kind : {Schedule::cosine, Schedule::trapezoid, Schedule::constant}) {
    TrainOptions o = schedule(kind);
    o.warmup = 0;
    EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 0), 1e-2);
  }
}

TEST(LearningRate, TrapezoidIsFlatThenLinear) {
  const TrainOptions o = schedule(Schedule::trapezoid);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 0), 1e-3);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 9), 1e-2);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 80), 1e-2);
  EXPECT_NEAR(learning_rate(rate_schedule(o), 90), 5.5e-3, 1e-15);  // halfway down
  EXPECT_NEAR(learning_rate(rate_schedule(o), 100), 1e-3, 1e-15);
}

TEST(LearningRate, StaysConstant) {
  const TrainOptions o = schedule(Schedule::constant);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 9), 1e-2);
  EXPECT_DOUBLE_EQ(learning_rate(rate_schedule(o), 99), 1e-2);
}

TEST(LearningRate, IsFiniteIfWarmUpExceedsTheRun) {
  TrainOptions o = schedule(Schedule::cosine);
  o.warmup = 200;
  for (int64_t step = 0; step <= 100; ++step)
    EXPECT_LT(learning_rate(rate_schedule(o), step), 1e-2) << "step " << step;
}

// AdamW in double: Loshchilov and Hutter 2019, algorithm 2.
struct PlainAdamW {
  std::vector<double> w, m, v;

  void update(const std::vector<float>& gradient, const TrainOptions& o, double scale, double decay,
              double rate, int step) {
    for (size_t i = 0; i < w.size(); ++i) {
      const double g = scale * static_cast<double>(gradient[i]);
      m[i] = o.beta1 * m[i] + (1 - o.beta1) * g;
      v[i] = o.beta2 * v[i] + (1 - o.beta2) * g * g;
      const double m_hat = m[i] / (1 - std::pow(o.beta1, step));
      const double v_hat = v[i] / (1 - std::pow(o.beta2, step));
      w[i] -= rate * (m_hat / (std::sqrt(v_hat) + o.epsilon) + decay * w[i]);
    }
  }
};

// Computes gradients from generated ids and targets.
void make_gradients(const model::Transformer& model, int32_t shift) {
  const Tensor ids = empty({2, 16}, DType::i32), targets = empty({2, 16}, DType::i32);
  for (int32_t i = 0; i < 32; ++i) {
    ids.data_as<int32_t>()[i] = (i * 3 + shift) % 11;
    targets.data_as<int32_t>()[i] = (i * 5 + shift) % 11;
  }
  model::Pass pass;
  pass.mask.causal = true;
  backward(cross_entropy(model.logits(model.hidden(ids, pass)), targets, 32));
}

void compare_with_plain(double clip) {
  model::Spec spec = small_spec();
  spec.vocabulary = 11;
  model::Transformer model(model::validated(spec));
  model::initialise(model, 3);
  TrainOptions o;
  o.clip = clip;
  o.weight_decay = 0.3;  // large, so that a wrong group is detected
  o.epsilon = 1e-3;      // limits the quotients of gradients that are rounding errors
  Optimizer optimizer(model::parameters_of(model), optimizer_options(o, DType::f32));
  std::map<std::string, PlainAdamW> plain;
  model.each([&](const std::string& name, model::Parameter& p) {
    const std::vector<float> w = to_floats(p.value);
    plain[name] = {
        {w.begin(), w.end()}, std::vector<double>(w.size()), std::vector<double>(w.size())};
  });
  for (int step = 1; step <= 5; ++step) {
    const double rate = 1e-2 * step;
    make_gradients(model, step);
    double squares = 0;
    model.each([&](const std::string&, model::Parameter& p) {
      for (const float g : to_floats(p.value.gradient())) squares += double{g} * double{g};
    });
    const double norm = std::sqrt(squares);
    EXPECT_NEAR(optimizer.gradient_norm(), norm, 1e-6 * norm);
    model.each([&](const std::string& name, model::Parameter& p) {
      const bool is_matrix =
          p.shape.size() == 2 && name != "decoder.position";  // gains and biases are vectors
      plain[name].update(to_floats(p.value.gradient()), o,
                         clip > 0 && norm > clip ? clip / norm : 1, is_matrix ? o.weight_decay : 0,
                         rate, step);
    });
    optimizer.update(step, rate, norm);
  }
  model.each([&](const std::string& name, model::Parameter& p) {
    const std::vector<float> w = to_floats(p.value);
    for (size_t i = 0; i < w.size(); ++i)
      ASSERT_NEAR(w[i], plain[name].w[i], 2e-5) << name << " " << i << ", clip " << clip;
    EXPECT_FALSE(p.value.gradient()) << name;  // cleared
  });
}

TEST(OptimizerTest, MatchesPlainAdamW) { compare_with_plain(0); }
TEST(OptimizerTest, ClipsTheNormOfAllGradientsTogether) { compare_with_plain(0.1); }
TEST(OptimizerTest, DoesNotClipSmallGradients) { compare_with_plain(1e6); }

// Returns the losses of the first and of the last steps of a run.
std::pair<double, double> losses_with(MomentPrecision moments) {
  const Runs runs;
  TrainOptions o = runs.options("out");
  o.steps = 300;
  o.moments = moments;
  o.learning_rate = 1e-2;
  double first = 0, last = 0;
  train(small_spec(), o, {}, [&](const TrainProgress& progress) {
    if (progress.step == 1) first = progress.loss;
    if (progress.step > 250) last += progress.loss / 50;
    return true;
  });
  return {first, last};
}

TEST(OptimizerTest, LearnsAsWellWithPackedMoments) {
  const auto [first, last] = losses_with(MomentPrecision::fp32);
  const auto [first_packed, last_packed] = losses_with(MomentPrecision::bits8);
  EXPECT_EQ(first_packed, first);
  EXPECT_LT(last, 0.5 * first);
  EXPECT_NEAR(last_packed, last, 0.03 * last);
}

}  // namespace
}  // namespace fovea::train
