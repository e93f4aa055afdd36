#pragma once

#include "tensor/tensor.h"

namespace fovea {

// x's elements in a dtype, for a product; no gradient.
inline Tensor in_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x.detach() : convert(x, dtype);
}

}  // namespace fovea
