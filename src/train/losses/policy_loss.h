#pragma once

#include "ops/ops.h"

namespace fovea::train {

// What the losses of R tokens compare with; all f32 [R], without gradients.
struct PolicyTargets {
  Tensor old;  // log-probabilities of the policy that wrote the tokens
  Tensor advantages;
  Tensor weights;    // of the tokens in the sum
  Tensor reference;  // log-probabilities of the reference; empty = no divergence
};
struct PolicyClip {
  double low = 0.2, high = 0.2;  // limits of the ratio: 1 - low, 1 + high
  double kl_weight = 0;
};
// Returns sum over tokens of weight (max(-ratio A, -clip(ratio) A) + kl_weight k3), where ratio =
// exp(log_p - old) (Schulman et al. 2017, eq. 7; Shao et al. 2024, eq. 3).   log_p [R] -> [1]
Tensor policy_loss(const Tensor& log_p, const PolicyTargets& targets, const PolicyClip& clip);

// y = exp(d) - d - 1 with d = reference - log_p: an estimate of the divergence of the policy from
// the reference, at least 0 (Schulman 2020, "Approximating KL divergence", k3).   [R] -> [R]
Tensor k3_divergence(const Tensor& log_p, const Tensor& reference);

struct ValueTargets {
  Tensor old, returns, weights;  // f32 [R]
};
// Returns 1/2 sum over tokens of weight max((v - return)^2, (clip(v, old -+ limit) - return)^2).
// values [R] -> [1]
Tensor value_loss(const Tensor& values, const ValueTargets& targets, double limit);

}  // namespace fovea::train
