#pragma once

// The objectives of embedders, composed of differentiable ops. Letters: B examples, C width.

#include <vector>

#include "tensor/tensor.h"

namespace fovea::infer {

// Returns the loss with in-batch negatives (Henderson et al. 2017, arXiv:1705.00652, section 4.4),
// the mean over i of -log softmax(a_i . c_j / temperature over j)[i]: candidate i is the positive
// of anchor i, and all others are its negatives. Vectors have unit length: anchors [B, C],
// candidates [B or more, C], of which the first B are the positives -> [1]
Tensor ranking_loss(const Tensor& anchors, const Tensor& candidates, float temperature);

// Returns the mean over i of (a_i . b_i - score_i)^2 (Reimers and Gurevych 2019, section 3).
// Vectors have unit length: a, b [B, C]; scores from -1 to 1 -> [1]
Tensor cosine_loss(const Tensor& a, const Tensor& b, const std::vector<float>& scores);

// Returns the first `count` elements of each row.   x [B, C] -> [B, count]
Tensor first_columns(const Tensor& x, int64_t count);
// The same, scaled to unit length.
Tensor first_dimensions(const Tensor& x, int64_t count);

// Returns the sum of a * b over all elements: [1].
Tensor inner_product(const Tensor& a, const Tensor& b);

}  // namespace fovea::infer
