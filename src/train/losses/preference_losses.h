#pragma once

#include <utility>

#include "fovea/train/preferences.h"
#include "tensor/tensor.h"

namespace fovea::train {

// The losses of n pairs or judged answers, each f64 [n]. The formulas are in docs/align.md; their
// definitions are those of TRL. Letters: r rewards, s sums and a means of the log-probabilities of
// answers, h differences of log-ratios.

// -log sigmoid(r_chosen - r_rejected - margin)
Tensor reward_losses(const Tensor& chosen, const Tensor& rejected, const Tensor& margins);

// sigmoid: -(1 - smoothing) log sigmoid(beta h) - smoothing log sigmoid(-beta h); hinge:
// max(0, 1 - beta h); ipo: (h - 1 / (2 beta))^2
Tensor dpo_losses(const Tensor& h, PreferenceLoss loss, double beta, double smoothing);

// weight * (1 - sigmoid(sign * beta * (ratio - kl))), where the sign is 1 for desirable and -1 for
// undesirable answers
struct KtoWeights {
  double beta, desirable, undesirable;
};
Tensor kto_losses(const Tensor& ratios, const Tensor& signs, double kl, const KtoWeights& weights);

// -a_chosen - lambda log sigmoid(log odds(a_chosen) - log odds(a_rejected)), where odds(a) =
// exp(a) / (1 - exp(a))
Tensor orpo_losses(const Tensor& chosen, const Tensor& rejected, double lambda);

// -log sigmoid(beta (a_chosen - a_rejected) - gamma)
Tensor simpo_losses(const Tensor& chosen, const Tensor& rejected, double beta, double gamma);

// Elementwise operations on f64 [n] in double, also with numbers.
Tensor times(const Tensor& x, double factor);
Tensor plus(const Tensor& x, double number);
// Returns elements 0, 2, 4, ... and 1, 3, 5, ... of f64 [2 n].
std::pair<Tensor, Tensor> alternating(const Tensor& x);

}  // namespace fovea::train
