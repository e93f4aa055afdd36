#pragma once

#include "tensor/tensor.h"

namespace fovea {

// What is computed in float whatever x is stored as, but in double for gradient checks.
inline DType working_type(const Tensor& x) {
  return x.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

// One number a row that a forward keeps for its backward.
inline Tensor statistics(const Tensor& x, Rows rows) {
  return empty({rows.count}, working_type(x));
}

}  // namespace fovea
