#include "losses/policy_loss.h"

namespace fovea::train {
namespace {

Tensor larger(const Tensor& a, const Tensor& b) {
  return scale(minimum(scale(a, -1), scale(b, -1)), -1);
}

Tensor square(const Tensor& x) { return multiply(x, x); }

// Copies of the targets on the device of the model.
PolicyTargets on_device(const PolicyTargets& t, const Device& device) {
  return {t.old.to(device), t.advantages.to(device), t.weights.to(device),
          t.reference ? t.reference.to(device) : Tensor()};
}

}  // namespace

Tensor k3_divergence(const Tensor& log_p, const Tensor& reference) {
  const Tensor d = subtract(reference, log_p);
  return shift(subtract(exp(d), d), -1);
}

Tensor policy_loss(const Tensor& log_p, const PolicyTargets& given, const PolicyClip& limits) {
  const PolicyTargets targets = on_device(given, log_p.device());
  const Tensor ratio = exp(subtract(log_p, targets.old));
  const Tensor clipped =
      clip(ratio, static_cast<float>(1 - limits.low), static_cast<float>(1 + limits.high));
  const Tensor gain =
      minimum(multiply(ratio, targets.advantages), multiply(clipped, targets.advantages));
  Tensor loss = scale(gain, -1);
  if (targets.reference && limits.kl_weight != 0) {
    loss = add(
        loss, scale(k3_divergence(log_p, targets.reference), static_cast<float>(limits.kl_weight)));
  }
  return sum(multiply(loss, targets.weights));
}

Tensor value_loss(const Tensor& values, const ValueTargets& given, double limit) {
  const Device& there = values.device();
  const ValueTargets targets{given.old.to(there), given.returns.to(there), given.weights.to(there)};
  const auto most = static_cast<float>(limit);
  const Tensor clipped = add(clip(subtract(values, targets.old), -most, most), targets.old);
  const Tensor worst =
      larger(square(subtract(values, targets.returns)), square(subtract(clipped, targets.returns)));
  return scale(sum(multiply(worst, targets.weights)), 0.5f);
}

}  // namespace fovea::train
