// The softmax of rows, and rows divided by their sums.

#include "kernels/cuda/numbers.h"
#include "kernels/cuda/rows.cuh"
//
#include "kernels/cpu/exp-inl.h"

namespace fovea::cuda {

using cpu::one_number::exp_of;

// Ignores NaN.
DEVICE float largest_of_row(In x, int64_t begin, int64_t width) {
  float most = -INFINITY;
  for (int64_t j = lane(); j < width; j += kWarp)
    most = cpu::one_number::larger(get(x, begin + j), most);
  return largest_over<kWarp>(most);
}

KERNEL(softmax)(Out y, In x, int64_t count, int64_t width) {
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const float most = largest_of_row(x, i * width, width);
    const auto e = [&](int64_t j) { return exp_of(get(x, i * width + j) - most); };
    const float total = sum_of_row(width, [&](int64_t j, float s) { return s + e(j); });
    for (int64_t j = lane(); j < width; j += kWarp) put(y, i * width + j, e(j) / total);
  }
}

KERNEL(softmax_backward)(Out dx, In dy, In y, int64_t count, int64_t width) {
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const float dot = sum_of_row(width, [&](int64_t j, float s) {
      return multiply_add(get(dy, i * width + j), get(y, i * width + j), s);
    });
    for (int64_t j = lane(); j < width; j += kWarp)
      put(dx, i * width + j, get(y, i * width + j) * (get(dy, i * width + j) - dot));
  }
}

KERNEL(divide_by_sum)(Out y, In x, int64_t count, int64_t width) {
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const auto at = [&](int64_t j) { return get(x, i * width + j); };
    const float total =
        sum_of_row(width, [&](int64_t j, float s) { return s + at(j); }) + kLeastSum;
    for (int64_t j = lane(); j < width; j += kWarp) put(y, i * width + j, at(j) / total);
  }
}

// dx = (dy - dy . x / sum) / sum
KERNEL(divide_by_sum_backward)(Out dx, In dy, In x, int64_t count, int64_t width) {
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const auto at = [&](int64_t j) { return get(x, i * width + j); };
    const auto g = [&](int64_t j) { return get(dy, i * width + j); };
    const float total =
        sum_of_row(width, [&](int64_t j, float s) { return s + at(j); }) + kLeastSum;
    const float mean =
        sum_of_row(width, [&](int64_t j, float s) { return multiply_add(g(j), at(j), s); }) / total;
    for (int64_t j = lane(); j < width; j += kWarp) put(dx, i * width + j, (g(j) - mean) / total);
  }
}

}  // namespace fovea::cuda
