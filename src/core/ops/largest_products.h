#pragma once

#include <cstdint>
#include <vector>

#include "tensor/tensor.h"

namespace fovea {

// y[n, r] = the largest product x[r] . z[t] over the tokens t of text n, whose vectors are the next
// counts[n] rows of z; 0 for a text without tokens. Products are computed in blocks, of which only
// the largest and their rows are kept, and the gradient passes through these rows alone: the first
// ones among equals. Elements are compared on the host.
// x [R, C], z [S, C], S the sum of counts [N] -> f32 (f64 for f64) [N, R]
Tensor largest_products(const Tensor& x, const Tensor& z, const std::vector<int64_t>& counts);

}  // namespace fovea
