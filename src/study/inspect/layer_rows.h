#pragma once

#include "inspect/inspection.h"

namespace fovea::study {

// The inputs and outputs of the sublayers of one layer for one token, all [1, 1, width]; unset if
// the layer has no such sublayer.
struct LayerRows {
  Tensor heads, mixed;  // outputs of the heads, and of the mixer, before its output norm
  Tensor cross;         // of cross-attention
  Tensor hidden, fed;   // the hidden layer of the feed-forward layer (no experts), its output
  // The sums with the residual stream before their norm; unset if they have none.
  Tensor mixed_sum, cross_sum, fed_sum;
};
LayerRows layer_rows(const Inspection::State& all, model::AttentionKind kind, int64_t layer,
                     int64_t token);

// Returns the rows of x [1, R, in] through the matrix of a layer of a block, without its bias,
// times the factors and the block's sublayer_scale: [R][out].
std::vector<std::vector<double>> product_rows(const model::Block& block, const model::Linear& layer,
                                              const Tensor& x, const model::Parameter& factors);

}  // namespace fovea::study
