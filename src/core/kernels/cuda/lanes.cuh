#pragma once

// Sums and maxima over groups of `count` neighbouring lanes, on each of them. The upper half is
// added to the lower one until one number is left, as the CPU adds its partial sums.

#include "kernels/cuda/dialect.h"

namespace fovea::cuda {

template <int count, class Number>
DEVICE Number sum_over(Number x) {
  for (int half = count / 2; half > 0; half /= 2) x += shuffle_xor(x, half);
  return x;
}
// Ignores NaN.
template <int count>
DEVICE float largest_over(float x) {
  for (int half = count / 2; half > 0; half /= 2) x = fmaxf(x, shuffle_xor(x, half));
  return x;
}

}  // namespace fovea::cuda
