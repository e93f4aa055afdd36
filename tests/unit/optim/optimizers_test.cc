#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "base/threads.h"
#include "fovea/core/random.h"
#include "loop/stepper.h"
#include "support/expect_error.h"
#include "support/runs.h"
#include "tensor/tape.h"

namespace fovea::train {
namespace {

// Parameters as in tools/goldens/make_optimizers.py, which computed the expected weights: two
// matrices of a layer, a token embedding and a gain.
class OptimizerGoldens : public testing::Test {
 protected:
  struct Named {
    const char *golden, *name;
    Shape shape;
    model::Role role;
  };
  static const std::vector<Named>& all() {
    static const std::vector<Named> named = {
        {"wide", "decoder.0.ffn.up.weight", {4, 9}, model::Role::matrix},
        {"tall", "decoder.0.ffn.down.weight", {9, 4}, model::Role::residual_matrix},
        {"embedding", "embedding.token", {7, 3}, model::Role::token_embedding},
        {"gain", "decoder.0.norm.ffn.input.weight", {6}, model::Role::gain}};
    return named;
  }

  void begin() {
    parameters_.clear();
    for (const Named& named : all())
      parameters_.push_back({named.shape, named.role, values(golden_["initial"], named)});
  }
  std::vector<model::NamedParameter> parameters() {
    std::vector<model::NamedParameter> list;
    for (size_t i = 0; i < parameters_.size(); ++i)
      list.push_back({all()[i].name, &parameters_[i]});
    return list;
  }
  // Adds the gradients of a step, multiplied by `factor`.
  void add_gradients(size_t step, double factor = 1) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor g = values(golden_["gradients"][step], all()[i]);
      backward(sum(multiply(parameters_[i].value, scale(g, static_cast<float>(factor)))));
    }
  }
  void run(const OptimizerOptions& options, const std::string& name) {
    SCOPED_TRACE(name);
    begin();
    Optimizer optimizer(parameters(), options);
    for (size_t step = 0; step < 5; ++step) {
      add_gradients(step);
      optimizer.update(static_cast<int64_t>(step) + 1, 0.02, optimizer.gradient_norm());
      if (golden_["weights"][name].contains(std::to_string(step + 1)))
        expect(golden_["weights"][name][std::to_string(step + 1)]);
    }
  }

  const nlohmann::json golden_ = read_json("tests/goldens/optimizers.json");
  std::vector<model::Parameter> parameters_;

 private:
  static Tensor values(const nlohmann::json& tensors, const Named& named) {
    return tensor_of(tensors[named.golden].get<std::vector<float>>(), named.shape);
  }
  void expect(const nlohmann::json& weights) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const auto want = weights[all()[i].golden].get<std::vector<double>>();
      const std::vector<float> found = to_floats(parameters_[i].value);
      for (size_t n = 0; n < want.size(); ++n)
        ASSERT_NEAR(found[n], want[n], 1e-6) << all()[i].golden << " " << n;
    }
  }
};

OptimizerOptions with(OptimizerKind kind) {
  OptimizerOptions options;
  options.clip = 0;
  options.choice.kind = kind;
  return options;
}

TEST_F(OptimizerGoldens, AdamW) { run(with(OptimizerKind::adamw), "adamw"); }

TEST_F(OptimizerGoldens, Sgd) {
  OptimizerOptions options = with(OptimizerKind::sgd);
  options.choice.momentum = 0.9;
  run(options, "sgd_nesterov");
  options.choice.nesterov = false;
  run(options, "sgd");
  options.choice.momentum = 0;
  run(options, "sgd_plain");
  EXPECT_EQ(Optimizer(parameters(), options).state().count("m.embedding.token"), 0);
}

TEST_F(OptimizerGoldens, Lion) { run(with(OptimizerKind::lion), "lion"); }

TEST_F(OptimizerGoldens, Adafactor) {
  OptimizerOptions options = with(OptimizerKind::adafactor);
  run(options, "adafactor");
  options.choice.relative_rate = false;
  run(options, "adafactor_absolute");
}

TEST_F(OptimizerGoldens, Muon) {
  OptimizerOptions options = with(OptimizerKind::muon);
  run(options, "muon");
  options.choice = {.kind = OptimizerKind::muon,
                    .momentum = 0.8,
                    .nesterov = false,
                    .muon_scale = MuonScale::spectral,
                    .muon_rate = 3};
  run(options, "muon_spectral");
}

// Factors in bf16 (8 bits) change the step by a few percent; a second run has the same bits.
TEST(MuonInBf16, IsNearTheStepInFp32) {
  for (const Shape& shape : {Shape{96, 160}, Shape{160, 96}, Shape{33, 33}}) {
    std::vector<std::vector<float>> found;
    for (const DType products : {DType::f32, DType::bf16, DType::bf16}) {
      model::Parameter p = {shape, model::Role::matrix, zeros(shape)};
      OptimizerOptions options = with(OptimizerKind::muon);
      options.products = products;
      Optimizer optimizer({{"decoder.0.ffn.up.weight", &p}}, options);
      Random random(5, Stream::init);
      std::vector<float> gradient(static_cast<size_t>(p.value.size()));
      for (float& each : gradient) each = random.normal();
      backward(sum(multiply(p.value, tensor_of(gradient, shape))));
      optimizer.update(1, 0.02, 1);
      found.push_back(to_floats(p.value));
    }
    double difference = 0, size = 0;
    for (size_t i = 0; i < found[0].size(); ++i) {
      difference += std::pow(found[0][i] - found[1][i], 2);
      size += std::pow(found[0][i], 2);
    }
    EXPECT_LT(std::sqrt(difference / size), 0.04) << shape[0];
    EXPECT_GT(difference, 0) << shape[0];
    EXPECT_EQ(found[1], found[2]);
  }
}

// The norm of all gradients together is limited for every rule: large gradients, clipped to the
// norm of small ones, have the effect of the small ones.
TEST_F(OptimizerGoldens, ClipBeforeTheRules) {
  for (const auto kind : {OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion,
                          OptimizerKind::adafactor, OptimizerKind::muon}) {
    std::vector<std::vector<float>> found[2];
    for (const bool large : {false, true}) {
      OptimizerOptions options = with(kind);
      options.clip = 0.5;
      begin();
      Optimizer optimizer(parameters(), options);
      for (size_t step = 0; step < 3; ++step) {
        add_gradients(step, large ? 64 : 16);  // powers of two do not change the rounding
        optimizer.update(static_cast<int64_t>(step) + 1, 0.02, optimizer.gradient_norm());
      }
      for (const model::Parameter& p : parameters_) found[large].push_back(to_floats(p.value));
    }
    for (size_t i = 0; i < found[0].size(); ++i)
      for (size_t n = 0; n < found[0][i].size(); ++n)
        ASSERT_NEAR(found[0][i][n], found[1][i][n], 1e-6) << static_cast<int>(kind);
  }
}

// An unused token has no gradient: its row of the embedding only decays, and everything is finite.
TEST_F(OptimizerGoldens, RowsWithoutGradients) {
  for (const auto kind : {OptimizerKind::adamw, OptimizerKind::sgd, OptimizerKind::lion,
                          OptimizerKind::adafactor, OptimizerKind::muon}) {
    begin();
    OptimizerOptions options = with(kind);
    options.weight_decay = 0;
    Optimizer optimizer(parameters(), options);
    const std::vector<float> before = to_floats(parameters_[2].value);
    for (int64_t step = 1; step <= 3; ++step) {
      std::vector<float> gradient(21, 0.0f);
      std::fill_n(gradient.begin() + 3, 18, 0.5f);
      backward(sum(multiply(parameters_[2].value, tensor_of(gradient, {7, 3}))));
      optimizer.update(step, 0.02, optimizer.gradient_norm());
    }
    const std::vector<float> after = to_floats(parameters_[2].value);
    for (size_t n = 0; n < 3; ++n) EXPECT_EQ(after[n], before[n]) << static_cast<int>(kind);
    for (const float value : after) EXPECT_TRUE(std::isfinite(value)) << static_cast<int>(kind);
    EXPECT_NE(after[3], before[3]);
  }
}

constexpr const char* kNames[] = {"adamw", "sgd", "lion", "adafactor", "muon"};

class EveryOptimizer : public testing::TestWithParam<OptimizerKind> {
 protected:
  EveryOptimizer() {
    options_.steps = 12;
    options_.save_every = 4;
    options_.optimizer.kind = GetParam();
    options_.clip = 0.5;
  }
  std::string state(const std::string& out, int64_t step) const {
    return read_file(model::snapshot_path(out, step) + "/state.safetensors");
  }
  Runs runs_;
  TrainOptions options_ = runs_.options("out");
};

TEST_P(EveryOptimizer, ResumesWithTheSameBitsForAnyThreads) {
  train(small_spec(), options_);
  TrainOptions other = options_;
  other.out = runs_ / "other";
  const int before = thread_count();
  set_threads(3);
  train(small_spec(), other, {}, stop_after(6));
  set_threads(1);
  train(small_spec(), other);
  set_threads(before);
  EXPECT_EQ(state(options_.out, 12), state(other.out, 12));
}

TEST_P(EveryOptimizer, LearnsAndPlansItsMemory) {
  options_.steps = 150;
  options_.learning_rate = GetParam() == OptimizerKind::sgd ? 0.05 : 0.01;
  if (GetParam() == OptimizerKind::lion) options_.learning_rate = 1e-3;
  if (GetParam() == OptimizerKind::adafactor) options_.optimizer.relative_rate = false;
  options_.warmup = 10;
  double first = 0, last = 0;
  uint64_t planned = 0;
  train(
      small_spec(), options_,
      [&](const TrainPlan& plan) {
        planned = plan.optimizer_bytes;
        return true;
      },
      [&](const TrainProgress& progress) {
        if (progress.step == 1) first = progress.loss;
        if (progress.step > 140) last += progress.loss / 10;
        return true;
      });
  EXPECT_LT(last, 0.8 * first);
  const SafeTensors saved(model::snapshot_path(options_.out, 150) + "/state.safetensors");
  uint64_t kept = 0;
  for (const StoredTensor& stored : saved.stored())
    if (!stored.name.starts_with("weight.")) kept += saved.tensor(stored.name).bytes();
  EXPECT_EQ(planned, kept);
}

TEST_P(EveryOptimizer, RefusesAnotherOptimizersSnapshot) {
  train(small_spec(), options_, {}, stop_after(4));
  options_.optimizer.kind =
      GetParam() == OptimizerKind::lion ? OptimizerKind::sgd : OptimizerKind::lion;
  options_.allow_change = true;
  expect_error(ErrorKind::InvalidArgument,
               {"optimizer: ", std::string("with the optimizer ") + kNames[int(GetParam())]},
               [&] { train(small_spec(), options_); });
}

INSTANTIATE_TEST_SUITE_P(Kinds, EveryOptimizer,
                         testing::Values(OptimizerKind::adamw, OptimizerKind::sgd,
                                         OptimizerKind::lion, OptimizerKind::adafactor,
                                         OptimizerKind::muon),
                         [](const auto& it) { return kNames[static_cast<int>(it.param)]; });

TEST(OptimizerOptionsOfRuns, AreRefusedIfTheOptimizerDoesNotUseThem) {
  const Runs runs;
  const auto refused = [&](std::initializer_list<std::string> parts, auto&& change) {
    TrainOptions o = runs.options("out");
    change(o);
    expect_error(ErrorKind::InvalidArgument, parts, [&] { train(small_spec(), o); });
  };
  refused({"momentum: has no effect in this run; expected `optimizer` sgd or muon"},
          [](TrainOptions& o) { o.optimizer.momentum = 0.5; });
  refused({"muon_rate: ", "expected `optimizer` muon"},
          [](TrainOptions& o) { o.optimizer.muon_rate = 2; });
  refused({"relative_rate: ", "expected `optimizer` adafactor"},
          [](TrainOptions& o) { o.optimizer.relative_rate = false; });
  for (const auto kind : {OptimizerKind::sgd, OptimizerKind::muon, OptimizerKind::adafactor}) {
    refused({"moments: has no effect in this run; expected `optimizer` adamw"},
            [&](TrainOptions& o) {
              o.optimizer.kind = kind;
              o.moments = MomentPrecision::bits8;
            });
  }
}

TEST(Growth, IsEvenAndSumsItself) {
  for (const Growth growth : {Growth{1, 4, 9}, Growth{3, 3, 0}, Growth{2, 700, 31},
                              Growth{1, 3, 100}, Growth{5, 5, 12}}) {
    int64_t sum = 0;
    for (int64_t step = 0; step < 150; ++step) {
      ASSERT_EQ(growth.sum(step), sum) << step;
      sum += growth.at(step);
      EXPECT_LE(growth.at(step), growth.at(step + 1));
    }
    EXPECT_EQ(growth.at(growth.steps), growth.last);
    EXPECT_EQ(growth.at(0), growth.steps > 0 ? growth.first : growth.last);
  }
}

// A run whose passes and windows grow reads the samples in order, and resumes with the same bits.
TEST(Growth, OfARunResumes) {
  const Runs runs;
  TrainOptions o = runs.options("out");
  o.steps = 12;
  o.save_every = 3;
  o.accumulate = 3;
  o.accumulate_from = 1;
  o.window_from = 2;
  std::vector<int64_t> tokens;
  train(small_spec(), o, {}, [&](const TrainProgress& progress) {
    tokens.push_back(progress.tokens);
    return true;
  });
  TrainOptions other = o;
  other.out = runs / "other";
  train(small_spec(), other, {}, stop_after(4));
  train(small_spec(), other);
  EXPECT_EQ(read_file(model::snapshot_path(o.out, 12) + "/state.safetensors"),
            read_file(model::snapshot_path(other.out, 12) + "/state.safetensors"));
  const int64_t pass = tokens[0];
  EXPECT_EQ(tokens[5] - tokens[4], 2 * pass);
  EXPECT_EQ(tokens[11] - tokens[10], 3 * pass);
  TrainOptions fixed = o;
  fixed.out = runs / "fixed";
  fixed.window_from = 0;
  train(small_spec(), fixed);
  EXPECT_NE(read_file(model::snapshot_path(o.out, 12) + "/state.safetensors"),
            read_file(model::snapshot_path(fixed.out, 12) + "/state.safetensors"));
  expect_error(ErrorKind::InvalidArgument, {"accumulate_from: 4; expected at most 3"}, [&] {
    TrainOptions wrong = o;
    wrong.accumulate_from = 4;
    train(small_spec(), wrong);
  });
}

}  // namespace
}  // namespace fovea::train
