#pragma once

#include "tensor/tensor.h"

namespace fovea {

// The dtype of statistics and biases: float for any stored type, double for gradient checks.
inline DType working_type(const Tensor& x) {
  return x.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

// One number per row that the forward keeps for the backward.
inline Tensor statistics(const Tensor& x, Rows rows) {
  return empty({rows.count}, working_type(x));
}

}  // namespace fovea
