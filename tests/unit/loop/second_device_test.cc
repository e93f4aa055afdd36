// Whole trainings on a second device, which queues its kernels and whose elements the host cannot
// access: the snapshots, the metrics and the resumed run have the bits of the reference kernels.

#include <gtest/gtest.h>

#include "kernels/isa.h"
#include "loop/run.h"
#include "start/prepare.h"
#include "support/runs.h"
#include "support/second_device.h"

namespace fovea::train {
namespace {

class TrainingOnSecondDevice : public testing::Test {
 protected:
  void SetUp() override { use_isa("reference"); }
  void TearDown() override { use_isa("auto"); }

  static TrainResult train_on(const Device& device, const model::Spec& spec, const TrainOptions& o,
                              const std::function<bool(const TrainProgress&)>& progress = {}) {
    const auto prepared = [&](const Say& say) {
      Job job = prepare(spec, o, false, say);
      model::move_to(device, job.model);
      return job;
    };
    return run(o.out, prepared, {}, progress, {});
  }

  TrainOptions options(const std::string& out) const {
    TrainOptions o = runs_.options(out);
    o.steps = 6;
    o.batch = 2;
    o.accumulate = 2;
    o.evaluate_every = o.sample_every = 3;
    o.evaluate_windows = 4;
    o.sample_tokens = 8;
    return o;
  }

  // Trains on both devices and compares the last snapshots.
  void expect_same(const model::Spec& spec, const std::string& name,
                   const std::function<void(TrainOptions&)>& change = {}) const {
    SCOPED_TRACE(name);
    TrainOptions host = options(name + "-host"), other = options(name + "-second");
    if (change) change(host), change(other);
    const TrainResult expected = train_on(cpu_device(), spec, host);
    const TrainResult found = train_on(test::second_device(), spec, other);
    EXPECT_EQ(found.loss, expected.loss);
    EXPECT_EQ(found.best_loss, expected.best_loss);
    EXPECT_EQ(state_bytes(other, host.steps), state_bytes(host, host.steps));
  }

  Runs runs_;
};

TEST_F(TrainingOnSecondDevice, HasTheBitsOfTheReference) {
  expect_same(small_spec(0.1f), "decoder", [](TrainOptions& o) { o.average = 2; });
  expect_same(small_t5(), "encoder-decoder",
              [](TrainOptions& o) { o.precision = Precision::bf16; });
}

TEST_F(TrainingOnSecondDevice, Resumes) {
  const TrainOptions whole = options("whole"), stopped = options("stopped");
  train_on(test::second_device(), small_spec(0.1f), whole);
  train_on(test::second_device(), small_spec(0.1f), stopped, stop_after(3));
  train_on(test::second_device(), small_spec(0.1f), stopped);
  EXPECT_EQ(state_bytes(stopped, whole.steps), state_bytes(whole, whole.steps));
}

}  // namespace
}  // namespace fovea::train
