#pragma once

// Rows of numbers, one for each warp. The CPU's kernels have 32 partial sums of a row, element j in
// number j mod 32: so do the lanes of a warp, with the same bits.

#include "kernels/cuda/lanes.cuh"

namespace fovea::cuda {

// The first row of this warp, and the distance to its next one.
DEVICE int64_t first_row() {
  return static_cast<int64_t>(block_x()) * (threads() / kWarp) + warp();
}
DEVICE int64_t row_stride() { return static_cast<int64_t>(blocks_x()) * (threads() / kWarp); }

// The sum of a row, of which add(j, sum) adds element j.
template <class Add>
DEVICE float sum_of_row(int64_t width, const Add& add) {
  float sum = 0;
  for (int64_t j = lane(); j < width; j += kWarp) sum = add(j, sum);
  return sum_over<kWarp>(sum);
}

// The sum of f(j) over a row: those of blocks in float, as on the CPU, which are added in double.
template <class F>
DEVICE double blockwise_sum(int64_t width, const F& f) {
  constexpr int64_t kBlock = 1024;
  double sum = 0;
  for (int64_t block = 0; block < width; block += kBlock) {
    const int64_t count = width - block < kBlock ? width - block : kBlock;
    sum += sum_of_row(count, [&](int64_t j, float s) { return s + f(block + j); });
  }
  return sum;
}

}  // namespace fovea::cuda
