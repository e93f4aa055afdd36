#pragma once

#include "tensor/tensor.h"

namespace fovea::train {

// Returns the loss of skip-gram with negative sampling (Mikolov et al. 2013, eq. 4), divided by
// `divisor`: the sum over pairs n of -log sigmoid(u[tokens[n]] . v[others[n][0]]), and of -log
// sigmoid(-u[tokens[n]] . v[others[n][k]]) for k >= 1.
// u, v [V, C], tokens i32 [N], others i32 [N, K] -> f64 [1]
Tensor skip_gram_loss(const Tensor& u, const Tensor& v, const Tensor& tokens, const Tensor& others,
                      double divisor);

}  // namespace fovea::train
