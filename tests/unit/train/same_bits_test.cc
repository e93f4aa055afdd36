#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/threads.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "train/trainer.h"
#include "unit/train/runs.h"

namespace fovea {
namespace {

class SameBits : public testing::TestWithParam<Precision> {
 protected:
  ~SameBits() override {
    set_thread_count(threads_);
    use_isa("auto");
  }

  // 160 samples, an epoch has fewer.
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
    set_thread_count(threads);
    EXPECT_EQ(run("threads" + std::to_string(threads)), once) << threads << " threads";
  }
}

TEST_P(SameBits, OverAnEpochsEnd) {
  std::optional<double> epoch;
  train(small_spec(0.1f), options("out"), {}, [&](const TrainProgress& progress) {
    epoch = progress.epoch;
    return true;
  });
  EXPECT_GT(epoch.value_or(0), 1);  // what the other tests here rely on
}

TEST_P(SameBits, StoppedAndResumed) {
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

TEST_P(SameBits, OnEveryInstructionSetOfAClass) {
  const DType compute = GetParam() == Precision::bf16 ? DType::bf16 : DType::f32;
  std::map<std::string, std::string> first;  // of each class
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

// One large batch, or the same samples in several passes: equal weights after a step.
TEST(Accumulation, EqualsALargeBatch) {
  const Runs runs;
  std::map<int64_t, std::map<std::string, Tensor>> states;
  for (const int64_t passes : {1, 4, 16}) {
    TrainOptions o = runs.options("out");
    o.batch = 16 / passes;
    o.accumulate = passes;
    o.epsilon = 1e-2;  // keeps the update proportional to the gradient, as small as that may be
    Job job = prepare(small_spec(), o, true, [](const std::string&) {});
    Stepper stepper(job.model, job.options, job.compute);
    for (int64_t step = 0; step < 2; ++step) EXPECT_EQ(stepper(*job.examples, step).bad_tensor, "");
    states[passes] = stepper.optimizer.state();
  }
  // Relative to the largest of a kind: some gradients, as a key bias's, are 0 but for rounding.
  std::map<char, float> largest;  // of weights, m and v, by the first letter of the name
  for (const auto& [name, tensor] : states[1]) {
    for (const float value : to_floats(tensor))
      largest[name[0]] = std::max(largest[name[0]], std::abs(value));
  }
  for (const int64_t passes : {4, 16}) {
    for (const auto& [name, tensor] : states[1]) {
      const std::vector<float> one = to_floats(tensor), several = to_floats(states[passes][name]);
      for (size_t i = 0; i < one.size(); ++i)
        ASSERT_NEAR(several[i], one[i], 1e-6f * largest[name[0]]) << name << ", passes: " << passes;
    }
  }
}

}  // namespace
}  // namespace fovea
