#pragma once

// What an embedder learns from, composed of differentiable ops. Letters: B examples, C width.

#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// In-batch negatives (Henderson et al. 2017, arXiv:1705.00652, 4.4): anchor i shall be nearer to
// candidate i than to all others,
//   mean over i of -log softmax(a_i . c_j / temperature over j)[i].
// Of length 1: anchors [B, C], candidates [B or more, C], the first B the right ones -> [1]
Tensor ranking_loss(const Tensor& anchors, const Tensor& candidates, float temperature);

// mean over i of (a_i . b_i - score_i)^2 (Reimers and Gurevych 2019, 3).
// Of length 1: a, b [B, C]; scores from -1 to 1 -> [1]
Tensor cosine_loss(const Tensor& a, const Tensor& b, const std::vector<float>& scores);

// The first `count` elements of each row, of length 1.   x [B, C] -> [B, count]
Tensor first_dimensions(const Tensor& x, int64_t count);

// sum of a * b over all elements -> [1]
Tensor inner_product(const Tensor& a, const Tensor& b);

}  // namespace fovea
