#include <gtest/gtest.h>

#include "base/threads.h"
#include "fovea/train/plan.h"

namespace fovea::train {
namespace {

// 10 MiB of gradients in 10 pieces, a step of 3 s of which 2 s are the backward pass, and a network
// that sends all gradients in 1 s.
class HostsPlan : public testing::Test {
 protected:
  HostsPlan() {
    plan_.batch = 1;
    plan_.flops = 1e9;
    plan_.memory.gradients = 10 << 20;
    options_.speed = 1e9;
    options_.hosts = 64;
    options_.network = 8.0 * (10 << 20);
  }
  HostsStep step(int64_t hosts) const {
    return plan_hosts(plan_, options_).at(static_cast<size_t>(hosts - 1));
  }

  Plan plan_;
  PlanOptions options_;
};

TEST_F(HostsPlan, OfOneHostDoesNotWait) {
  EXPECT_EQ(step(1).seconds(), 3);
  EXPECT_EQ(step(1).bytes_sent, 0);
}

TEST_F(HostsPlan, SendsTheBytesOfARing) {
  EXPECT_DOUBLE_EQ(step(2).bytes_sent, 10 << 20);
  EXPECT_DOUBLE_EQ(step(4).bytes_sent, 15 << 20);
}

TEST_F(HostsPlan, WaitsForWhatTheBackwardPassDoesNotHide) {
  EXPECT_DOUBLE_EQ(step(2).wait_seconds, 1 - 0.9);
  EXPECT_DOUBLE_EQ(step(8).wait_seconds, 1.75 - 0.225);
  options_.network *= 100;
  // The last piece follows the backward pass, at the speed of a core that copies.
  EXPECT_NEAR(step(2).wait_seconds, 0.1 * (10 << 20) * 1.2e-9, 1e-12);
}

TEST_F(HostsPlan, CountsTheLatencyOfTwoTransfersAndOfAgreements) {
  options_.latency = 10;
  EXPECT_DOUBLE_EQ(step(2).exchange_seconds, 1 + 2 * 0.01);
  EXPECT_DOUBLE_EQ(step(2).wait_seconds, 1 - 0.9 + (2 + 2) * 0.01);
  EXPECT_DOUBLE_EQ(step(8).wait_seconds, 1.75 - 0.225 + (2 + 2 * 3) * 0.01);
}

TEST_F(HostsPlan, ACoreThatCopiesDoesNotCompute) {
  EXPECT_NEAR(step(2).compute_seconds, 1.5 + (10 << 20) * 1.2e-9 / thread_count(), 1e-12);
}

}  // namespace
}  // namespace fovea::train
