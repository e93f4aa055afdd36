#include <algorithm>
#include <bit>
#include <cmath>

#include "base/float_mode.h"
#include "base/threads.h"
#include "fovea/train/plan.h"
#include "kernels/isa.h"
#include "plan/speed.h"

namespace fovea::train {
namespace {

constexpr double kPieceBytes = 1 << 20;       // sent together
constexpr double kBackwardShare = 2.0 / 3.0;  // of a step
// After the gradients, the hosts exchange the losses, and the decision to continue.
constexpr double kAgreements = 2;
constexpr double kCopying = 1.2e-9;  // seconds of one core for a byte that is sent and received
constexpr double kUsualShare = 0.7;  // of the speed of matrix products, that training reaches
constexpr double kMeasuring = 0.3;   // seconds

// A piece is exchanged in parts, each of which one host adds, by an all-to-all, and the sums are
// gathered, while the next pieces follow on the same wire: the delays of two transfers count once.
// The first piece leaves when its part of the backward pass is done; the last one is sent after it.
// A core that copies does not compute.
HostsStep step_on(int64_t hosts, double step_seconds, double gradient_bytes, const PlanOptions& o) {
  const auto n = static_cast<double>(hosts);
  HostsStep step{.hosts = hosts, .compute_seconds = step_seconds / n};
  if (hosts == 1) return step;
  const double pieces = std::max(1.0, std::ceil(gradient_bytes / kPieceBytes));
  const double sending = o.network > 0 ? 8 / o.network : 0, latency = o.latency / 1e3;
  step.bytes_sent = 2 * (n - 1) / n * gradient_bytes;
  const double wire = step.bytes_sent * std::max(sending, kCopying);
  const double hidden = kBackwardShare * step.compute_seconds * (1 - 1 / pieces);
  const auto rounds = static_cast<double>(std::bit_width(static_cast<uint64_t>(hosts - 1)));
  step.compute_seconds += step.bytes_sent * kCopying / thread_count();
  step.exchange_seconds = wire + 2 * latency;
  step.wait_seconds = std::max(wire / pieces, wire - hidden) + (2 + kAgreements * rounds) * latency;
  return step;
}

}  // namespace

std::vector<HostsStep> plan_hosts(const Plan& plan, const PlanOptions& o) {
  const FloatMode mode;
  const double speed =
      o.speed > 0
          ? o.speed * o.utilisation
          : kUsualShare * measured_flops(native_bf16() ? DType::bf16 : DType::f32, kMeasuring);
  const double step_seconds = 3 * plan.flops * static_cast<double>(plan.batch) / speed;
  std::vector<HostsStep> steps;
  for (int64_t hosts = 1; hosts <= o.hosts; ++hosts)
    steps.push_back(step_on(hosts, step_seconds, plan.memory.gradients, o));
  return steps;
}

}  // namespace fovea::train
