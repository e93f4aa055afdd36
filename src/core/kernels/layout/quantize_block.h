#pragma once

#include "kernels/layout/blocks.h"

namespace fovea {

// The largest magnitude that blocks of every format can represent.
constexpr float kMostInBlock = 65504;  // of f16

// Sets `to` to a block of values near x [format.block], which must be finite and at most
// kMostInBlock. Searches the scales, minimums and numbers with a small error
//
//   sum_i weights[i] sqrt(x[i]^2 + 2 mean of x^2) (x[i] - value[i])^2
//
// where `weights` [format.block] must be positive; null = all 1. Large weights of a model matter
// more than their number, hence the root. The result is a function of the arguments only.
void quantize_block(const BlockFormat& format, const float* x, const float* weights,
                    WeightBlock& to);

}  // namespace fovea
