// Whole trainings on devices whose elements the host cannot access, and which compute their kernels
// late: the snapshots, the metrics and the resumed run have the bits of the host. The second device
// has the reference kernels, the GPU device the bits of the CPU in fp32.

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "loop/run.h"
#include "start/prepare.h"
#include "support/gpu.h"
#include "support/runs.h"
#include "support/second_device.h"

namespace fovea::train {
namespace {

class TrainingOnDevices : public testing::Test {
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

  // Trains on the device and on the host, and compares the last snapshots.
  void expect_bits_of_host(const Device& device, const model::Spec& spec, const std::string& name,
                           const std::function<void(TrainOptions&)>& change = {}) const {
    SCOPED_TRACE(name);
    TrainOptions host = options(name + "-host"), other = options(name + "-device");
    if (change) change(host), change(other);
    const TrainResult expected = train_on(cpu_device(), spec, host);
    const TrainResult found = train_on(device, spec, other);
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.best_loss, expected.best_loss);
    EXPECT_EQ(state_bytes(other, host.steps), state_bytes(host, host.steps));
  }

  void expect_resumes(const Device& device) const {
    const TrainOptions whole = options("whole"), stopped = options("stopped");
    train_on(device, small_spec(0.1f), whole);
    train_on(device, small_spec(0.1f), stopped, stop_after(2));
    train_on(device, small_spec(0.1f), stopped);
    EXPECT_EQ(state_bytes(stopped, whole.steps), state_bytes(whole, whole.steps));
  }

  static model::Spec small_llama() {
    model::Spec spec = test::scaled_down(
        model::preset("llama3-8b"), {.vocabulary = 0, .context = 16, .width = 32, .layers = 2}, 64);
    spec.decoder->attention.kv_heads = 1;
    return spec;
  }

  Runs runs_;
};

class TrainingOnSecondDevice : public TrainingOnDevices {
 protected:
  void SetUp() override { use_isa("reference"); }
  void TearDown() override { use_isa("auto"); }
};

TEST_F(TrainingOnSecondDevice, HasTheBitsOfTheReference) {
  expect_bits_of_host(test::second_device(), small_spec(0.1f), "decoder",
                      [](TrainOptions& o) { o.average = 2; });
  expect_bits_of_host(test::second_device(), small_t5(), "encoder-decoder",
                      [](TrainOptions& o) { o.precision = Precision::bf16; });
}

TEST_F(TrainingOnSecondDevice, Resumes) { expect_resumes(test::second_device()); }

using TrainingOnGpu = TrainingOnDevices;

TEST_F(TrainingOnGpu, HasTheBitsOfTheCpu) {
  expect_bits_of_host(test::gpu_device(), small_spec(0.1f), "gpt",
                      [](TrainOptions& o) { o.average = 2; });
  expect_bits_of_host(test::gpu_device(), small_llama(), "llama");
}

// Saving an adapter once compared its matrices in the memory of the device, which ended the
// program.
TEST_F(TrainingOnGpu, TrainsLowRankAdapters) {
  const TrainOptions base = options("base");
  train_on(cpu_device(), small_llama(), base);
  expect_bits_of_host(test::gpu_device(), small_llama(), "lora", [&](TrainOptions& o) {
    o.from = base.out;
    o.lora.rank = 4;
  });
}

TEST_F(TrainingOnGpu, Resumes) { expect_resumes(test::gpu_device()); }

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
