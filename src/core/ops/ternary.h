#pragma once

#include "tensor/tensor.h"

namespace fovea {

// The roundings of BitNet b1.58 (Ma et al. 2024, "The Era of 1-bit LLMs", 2, and the code of
// transformers); the gradient passes through unchanged. round_rows: each row becomes multiples of
// its largest magnitude / 127.   x [..., C] -> [..., C]
// round_ternary: the matrix becomes -1, 0 or 1 times the mean of its magnitudes. Both divide by at
// least 1e-5.
Tensor round_rows(const Tensor& x);
Tensor round_ternary(const Tensor& matrix);

}  // namespace fovea
