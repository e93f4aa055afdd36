#pragma once

// For ops that compute on their own, without a device's kernel: moves of memory and the small sums
// of a router.

#include "tensor/tensor.h"

namespace fovea {

// The elements in the type that is computed in: double of f64, else float.
inline Tensor working(const Tensor& x) {
  return x.dtype() == DType::bf16 ? convert(x, DType::f32) : x;
}
inline DType working_type(const Tensor& x) {
  return x.dtype() == DType::f64 ? DType::f64 : DType::f32;
}

// Calls f with a zero of that type.
template <class F>
void with_working_type(DType dtype, F&& f) {
  if (dtype == DType::f64)
    f(double{0});
  else
    f(float{0});
}

// y (+)= x, rounded to y's type.
inline void deliver(Out y, const Tensor& x) {
  if (y.data != nullptr) kernels(x).convert(y, x, x.size());
}

}  // namespace fovea
