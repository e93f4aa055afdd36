#pragma once

// Changes of a tensor's elements, without gradients.

#include <span>

#include "tensor/tensor.h"

namespace fovea {

// Returns the elements of an f32 tensor on the CPU.
inline std::span<float> floats_of(const Tensor& x) {
  return {static_cast<float*>(x.data()), static_cast<size_t>(x.size())};
}

// y += factor x
inline void add_scaled(const Tensor& y, const Tensor& x, float factor) {
  Out sum = y;
  sum.add = true;
  kernels(y).scale(sum, x, factor, y.size());
}

// x = factor x
inline void scale_in_place(const Tensor& x, double factor) {
  kernels(x).scale(x, x, static_cast<float>(factor), x.size());
}

}  // namespace fovea
