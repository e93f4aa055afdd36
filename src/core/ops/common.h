#pragma once

// What several ops share.

#include "base/error.h"
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

// Returns the elements from `begin` on.
inline In at(In x, int64_t begin) {
  return {static_cast<const char*>(x.data) + begin * static_cast<int64_t>(size_of(x.dtype)),
          x.dtype, x.device};
}
inline Out at(Out y, int64_t begin) {
  if (y.data == nullptr) return y;  // the result is not requested
  return {static_cast<char*>(y.data) + begin * static_cast<int64_t>(size_of(y.dtype)), y.dtype,
          y.add, y.device};
}

// Returns x in `dtype` and without a gradient, as an operand of a product.
inline Tensor in_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x.detach() : convert(x, dtype);
}

inline void check_probability(const Dropout& dropout, const char* op) {
  check(dropout.probability >= 0 && dropout.probability < 1,
        "{}: dropout {}; expected at least 0 and below 1", op, dropout.probability);
}

}  // namespace fovea
