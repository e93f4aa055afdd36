#pragma once

#include "kernels/kernels.h"

namespace fovea {

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

}  // namespace fovea
