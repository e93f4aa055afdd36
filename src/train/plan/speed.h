#pragma once

#include "base/dtype.h"

namespace fovea::train {

// The rates of this machine. Each is the best one that was measured within about `seconds`, after a
// run that is not measured.

// Returns the rate of a large matrix product in `dtype` on all threads, in floating-point
// operations per second.
double measured_flops(DType dtype, double seconds);
// Returns the rate of a large product with int8 weights that have a scale per output, on all
// threads, in operations per second (two for each multiplication), rounding of the activations
// included.
double measured_int8_operations(double seconds);
// Returns the bytes per second that `threads` threads together read from memory.
double measured_bandwidth(int threads, double seconds);

}  // namespace fovea::train
