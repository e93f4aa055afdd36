#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/threads.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "loop/trainer.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

class SameBits : public testing::TestWithParam<Precision> {
 protected:
  ~SameBits() override {
    set_threads(threads_);
    use_isa("auto");
  }

  // The run uses 160 samples, more than an epoch.
  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.accumulate = 2;
    o.precision = GetParam();
    return o;
  }
  std::string run(const std::string& out) const {
    const TrainOptions o = options(out);
    const TrainResult result = train(small_spec(0.1f), o);
    EXPECT_EQ(result.step, 20);
    EXPECT_FALSE(result.interrupted);
    return state_bytes(o, 20);
  }

  Runs runs_;
  const int threads_ = thread_count();
};

TEST_P(SameBits, OnASecondRunAndForAnyNumberOfThreads) {
  const std::string once = run("once");
  EXPECT_EQ(run("again"), once);
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    EXPECT_EQ(run("threads" + std::to_string(threads)), once) << threads << " threads";
  }
}

TEST_P(SameBits, AcrossTheEndOfAnEpoch) {
  std::optional<double> epoch;
  train(small_spec(0.1f), options("out"), {}, [&](const TrainProgress& progress) {
    epoch = progress.epoch;
    return true;
  });
  EXPECT_GT(epoch.value_or(0), 1);  // other tests in this file rely on this
}

TEST_P(SameBits, IfLayersAreComputedAgain) {
  TrainOptions o = options("again");
  o.recompute = -1;
  train(small_spec(0.1f), o);
  EXPECT_EQ(state_bytes(o, 20), run("once"));
}

TEST_P(SameBits, WithPackedMomentsAfterStoppingAndResuming) {
  TrainOptions stopped = options("stopped"), straight = options("straight");
  stopped.moments = straight.moments = MomentPrecision::bits8;
  train(small_spec(0.1f), stopped, {}, stop_after(8));
  train(small_spec(0.1f), stopped);
  set_threads(3);
  train(small_spec(0.1f), straight);
  EXPECT_EQ(state_bytes(stopped, 20), state_bytes(straight, 20));
}

TEST_P(SameBits, AfterStoppingAndResuming) {
  const TrainOptions o = options("stopped");
  const TrainResult stopped = train(small_spec(0.1f), o, {}, stop_after(8));
  EXPECT_EQ(stopped.step, 8);
  EXPECT_TRUE(stopped.interrupted);
  TrainPlan plan;
  train(small_spec(0.1f), o, [&](const TrainPlan& told) {
    plan = told;
    return true;
  });
  EXPECT_EQ(plan.first_step, 8);
  EXPECT_EQ(state_bytes(o, 20), run("straight"));
  EXPECT_EQ(read_file(o.out + "/model.safetensors"),
            read_file(runs_ / "straight/model.safetensors"));
}

TEST_P(SameBits, AfterResumingAModelWithExpertsAndDyt) {
  model::Spec spec = small_spec(0.1f);
  model::StackSpec& d = *spec.decoder;
  d.norm.kind = model::NormKind::dyt;
  d.ffn.experts = {.count = 4,
                   .balance = 0.01f,
                   .score = model::ExpertScore::sigmoid,
                   .selection_bias = true,
                   .groups = 2,
                   .shared = 1,
                   .shared_gate = true};
  const TrainOptions stopped = options("stopped"), straight = options("straight");
  train(spec, stopped, {}, stop_after(8));
  train(spec, stopped);
  train(spec, straight);
  EXPECT_EQ(state_bytes(stopped, 20), state_bytes(straight, 20));
  EXPECT_EQ(read_file(stopped.out + "/model.safetensors"),
            read_file(straight.out + "/model.safetensors"));
}

TEST_P(SameBits, OnEveryInstructionSetOfAClass) {
  const DType compute = GetParam() == Precision::bf16 ? DType::bf16 : DType::f32;
  std::map<std::string, std::string> first;  // by class of CPU
  for (const std::string& isa : testable_isas()) {
    use_isa(isa);
    const std::string bytes = run(isa);
    const auto [found, is_new] = first.emplace(numeric_class(compute), bytes);
    EXPECT_TRUE(found->second == bytes) << isa;
  }
  EXPECT_EQ(first.size(), compute == DType::bf16 ? 2u : 1u);
}

INSTANTIATE_TEST_SUITE_P(Precisions, SameBits, testing::Values(Precision::fp32, Precision::bf16),
                         [](const auto& precision) {
                           return precision.param == Precision::fp32 ? "fp32" : "bf16";
                         });

// A model for which splitting a step of 8 windows into passes must not change any bit of the
// weights, moments and losses. The cases vary norms, positions, tied matrices, numbers of predicted
// tokens, dropout and unit sizes.
struct Split {
  std::string name;
  model::Spec spec;
  std::string tokenizer;
};

model::Spec decoder_of_other_parts() {
  model::Spec spec = small_spec(0.1f);
  model::StackSpec& d = *spec.decoder;
  d.layers = 2;
  d.position.kind = model::PositionKind::rotary;
  d.norm.kind = model::NormKind::rms;
  d.attention.norm = model::QueryKeyNorm::head;
  d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  d.ffn.gated = true;
  d.ffn.activation = Activation::silu;
  spec.head.tied = false;
  return spec;
}

std::vector<Split> splits() {
  std::vector<Split> all;
  all.push_back({"next_token", small_spec(0.1f), ""});
  all.back().spec.context = 15;  // the context and the width are not multiples of four
  all.back().spec.width = 18;
  all.push_back({"other_parts", decoder_of_other_parts(), ""});
  all.push_back({"deepnorm_with_dyt", small_spec(0.1f), ""});
  model::StackSpec& d = *all.back().spec.decoder;
  d.placement = {false, false, true};
  d.residual_scale = 1.5f;
  d.norm.kind = model::NormKind::dyt;
  all.push_back({"masked", small_encoder(), "wordpiece:60"});
  all.back().spec.dropout = {0.1f, 0.1f, 0.1f};
  all.push_back({"spans", small_t5(), "bpe:400"});
  all.back().spec.dropout = {0.1f, 0.1f, 0.1f};
  return all;
}

class SplitSteps : public testing::TestWithParam<Split> {
 protected:
  ~SplitSteps() override { set_threads(threads_); }

  // Returns the weights and moments after ten steps, and the losses.
  std::pair<std::string, std::vector<double>> run(Precision precision, int64_t passes) const {
    TrainOptions o = runs_.options("out" + std::to_string(++runs_made_));
    if (!GetParam().tokenizer.empty()) o.tokenizer = GetParam().tokenizer;
    o.precision = precision;
    o.steps = 10;
    o.batch = 8 / passes;
    o.accumulate = passes;
    std::vector<double> losses;
    train(GetParam().spec, o, {}, [&](const TrainProgress& progress) {
      losses.push_back(progress.loss);
      return true;
    });
    return {state_bytes(o, 10), losses};
  }

  Runs runs_;
  mutable int runs_made_ = 0;
  const int threads_ = thread_count();
};

TEST_P(SplitSteps, GiveTheBitsOfAnUnsplitStep) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    set_threads(1);
    const auto [whole, losses] = run(precision, 1);
    for (const auto& [passes, threads] : {std::pair{1, 2}, {2, 1}, {4, 2}, {8, 1}}) {
      set_threads(threads);
      const auto [state, found] = run(precision, passes);
      EXPECT_TRUE(state == whole) << passes << " passes, " << threads << " threads";
      EXPECT_EQ(found, losses) << passes << " passes, " << threads << " threads";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, SplitSteps, testing::ValuesIn(splits()),
                         [](const auto& split) { return split.param.name; });

}  // namespace
}  // namespace fovea::train
