#include "losses/preference_losses.h"

#include "ops/ops.h"
#include "tensor/host_values.h"

namespace fovea::train {

Tensor times(const Tensor& x, double factor) {
  return multiply(x, full(x.shape(), factor, DType::f64, x.device()));
}

Tensor plus(const Tensor& x, double number) {
  return add(x, full(x.shape(), number, DType::f64, x.device()));
}

std::pair<Tensor, Tensor> alternating(const Tensor& x) {
  const int64_t n = x.size() / 2;
  const auto column = [&](int32_t index) {
    return pick(x.view({n, 2}), full({n, 1}, index, DType::i32)).view({n});
  };
  return {column(0), column(1)};
}

Tensor reward_losses(const Tensor& chosen, const Tensor& rejected, const Tensor& margins) {
  return times(log_sigmoid(subtract(subtract(chosen, rejected), margins)), -1);
}

Tensor dpo_losses(const Tensor& h, PreferenceLoss loss, double beta, double smoothing) {
  if (loss == PreferenceLoss::ipo) {
    const Tensor distance = plus(h, -1 / (2 * beta));
    return multiply(distance, distance);
  }
  if (loss == PreferenceLoss::hinge) return activation(plus(times(h, -beta), 1), Activation::relu);
  const Tensor right = times(log_sigmoid(times(h, beta)), smoothing - 1);
  if (smoothing == 0) return right;
  return add(right, times(log_sigmoid(times(h, -beta)), -smoothing));
}

Tensor kto_losses(const Tensor& ratios, const Tensor& signs, double kl, const KtoWeights& weights) {
  const HostValues<double> sign(signs);
  const Tensor factors = tensor_from<double>(signs.shape(), [&](int64_t i) {
    return sign[i] > 0 ? weights.desirable : weights.undesirable;
  });
  const Tensor values = exp(log_sigmoid(times(multiply(plus(ratios, -kl), signs), weights.beta)));
  return multiply(plus(times(values, -1), 1), factors);
}

Tensor orpo_losses(const Tensor& chosen, const Tensor& rejected, double lambda) {
  // The limit keeps the logarithm of an answer of probability 1 finite.
  const auto rest = [](const Tensor& a) {
    return log(clip(plus(times(exp(a), -1), 1), 1e-12f, 1));
  };
  const Tensor log_odds =
      subtract(subtract(chosen, rejected), subtract(rest(chosen), rest(rejected)));
  return subtract(times(log_sigmoid(log_odds), -lambda), chosen);
}

Tensor simpo_losses(const Tensor& chosen, const Tensor& rejected, double beta, double gamma) {
  return times(log_sigmoid(plus(times(subtract(chosen, rejected), beta), -gamma)), -1);
}

}  // namespace fovea::train
