#pragma once

#include "tensor/tensor.h"

namespace fovea {

// Returns the dtype of statistics, relative position biases and other results that are not rounded
// to the dtype of x: f32, or f64 for gradient checks.
inline DType working_type(const Tensor& x) {
  return x.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

// Allocates one number per row, which the forward pass keeps for the backward pass.
inline Tensor statistics(const Tensor& x, Rows rows) {
  return empty({rows.count}, working_type(x), x.device());
}

}  // namespace fovea
