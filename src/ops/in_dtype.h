#pragma once

#include "tensor/tensor.h"

namespace fovea {

// Returns the elements of x in a dtype, for a product, without a gradient.
inline Tensor in_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x.detach() : convert(x, dtype);
}

}  // namespace fovea
