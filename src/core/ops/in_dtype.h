#pragma once

#include "tensor/tensor.h"

namespace fovea {

// Returns x in `dtype` and without a gradient, as an operand of a product.
inline Tensor in_dtype(const Tensor& x, DType dtype) {
  return x.dtype() == dtype ? x.detach() : convert(x, dtype);
}

}  // namespace fovea
