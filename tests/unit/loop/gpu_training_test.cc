// Whole trainings on the GPU device: in fp32, the snapshots, the metrics and the resumed run have
// the bits of the CPU.

#include <gtest/gtest.h>

#include "loop/run.h"
#include "start/prepare.h"
#include "support/gpu.h"
#include "support/runs.h"

namespace fovea::train {
namespace {

class TrainingOnGpu : public testing::Test {
 protected:
  static TrainResult train_on(const Device& device, const model::Spec& spec, const TrainOptions& o,
                              const std::function<bool(const TrainProgress&)>& progress = {}) {
    const test::DeviceInUse use(device);
    return run(o.out, [&](const Say& say) { return prepare(spec, o, false, say); }, {}, progress,
               {});
  }

  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.steps = 4;
    o.batch = 2;
    o.accumulate = 2;
    o.evaluate_every = o.sample_every = 2;
    o.evaluate_windows = 4;
    o.sample_tokens = 8;
    return o;
  }

  void expect_bits_of_cpu(const model::Spec& spec, const std::string& name,
                          const std::function<void(TrainOptions&)>& change = {}) const {
    SCOPED_TRACE(name);
    TrainOptions host = options(name + "-cpu"), other = options(name + "-gpu");
    if (change) change(host), change(other);
    const TrainResult expected = train_on(cpu_device(), spec, host);
    const TrainResult found = train_on(test::gpu_device(), spec, other);
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.best_loss, expected.best_loss);
    EXPECT_EQ(state_bytes(other, host.steps), state_bytes(host, host.steps));
  }

  static model::Spec small_llama() {
    model::Spec spec = test::scaled_down(
        model::preset("llama3-8b"), {.vocabulary = 0, .context = 16, .width = 32, .layers = 2}, 64);
    spec.decoder->attention.kv_heads = 1;
    return spec;
  }

  Runs runs_;
};

TEST_F(TrainingOnGpu, HasTheBitsOfTheCpu) {
  expect_bits_of_cpu(small_spec(0.1f), "gpt", [](TrainOptions& o) { o.average = 2; });
  expect_bits_of_cpu(small_llama(), "llama");
}

TEST_F(TrainingOnGpu, TrainsLowRankAdapters) {
  TrainOptions base = options("base");
  train_on(cpu_device(), small_llama(), base);
  expect_bits_of_cpu(small_llama(), "lora", [&](TrainOptions& o) {
    o.from = base.out;
    o.lora.rank = 4;
  });
}

TEST_F(TrainingOnGpu, Resumes) {
  const TrainOptions whole = options("whole"), stopped = options("stopped");
  train_on(test::gpu_device(), small_spec(0.1f), whole);
  train_on(test::gpu_device(), small_spec(0.1f), stopped, stop_after(2));
  train_on(test::gpu_device(), small_spec(0.1f), stopped);
  EXPECT_EQ(state_bytes(stopped, whole.steps), state_bytes(whole, whole.steps));
}

// The kernels round in other places.
TEST_F(TrainingOnGpu, LearnsInHalves) {
  const auto loss_on = [&](const Device& device, const std::string& name) {
    TrainOptions o = options(name);
    o.precision = Precision::bf16;
    return train_on(device, small_llama(), o).loss;
  };
  EXPECT_NEAR(loss_on(test::gpu_device(), "gpu"), loss_on(cpu_device(), "cpu"), 0.01);
}

}  // namespace
}  // namespace fovea::train
