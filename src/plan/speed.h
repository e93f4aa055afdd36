#pragma once

#include "base/dtype.h"

namespace fovea {

// Returns the best rate of a large matrix product in `dtype` on all threads, in floating-point
// operations per second, measured for at least `seconds`.
double measured_flops(DType dtype, double seconds);

}  // namespace fovea
