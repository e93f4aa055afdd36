#pragma once

// Reads and writes any stored floating-point type as a double, so that one naive loop serves every
// dtype.

#include "base/dtype.h"
#include "base/error.h"
#include "kernels/kernels.h"

namespace fovea::reference {

inline double get(In x, int64_t i) {
  switch (x.dtype) {
    case DType::f32: return static_cast<const float*>(x.data)[i];
    case DType::bf16: return widen(static_cast<const bf16*>(x.data)[i]);
    case DType::f64: return static_cast<const double*>(x.data)[i];
    default:
      fail(ErrorKind::Internal, "reference kernel: the dtype is {}; expected fp32, bf16 or fp64",
           name_of(x.dtype));
  }
}

// y[i] = value, or += if y.add, rounded to y's dtype. Does nothing if y is null.
inline void put(Out y, int64_t i, double value) {
  if (y.data == nullptr) return;
  if (y.add) value += get({y.data, y.dtype}, i);
  switch (y.dtype) {
    case DType::f32: static_cast<float*>(y.data)[i] = static_cast<float>(value); return;
    case DType::bf16: static_cast<bf16*>(y.data)[i] = narrow(static_cast<float>(value)); return;
    case DType::f64: static_cast<double*>(y.data)[i] = value; return;
    default:
      fail(ErrorKind::Internal, "reference kernel: the dtype is {}; expected fp32, bf16 or fp64",
           name_of(y.dtype));
  }
}

}  // namespace fovea::reference
