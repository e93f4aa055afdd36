#pragma once

// Operands of mma() in shared memory, and the pipeline of copies to them.

#include "kernels/cuda/dialect.h"
#include "kernels/cuda/tile_sizes.h"

namespace fovea::cuda {

inline constexpr int kVector = 8;  // bf16 that are copied at once

// Rows are `stride` elements apart in each of these functions. load_left: the registers of 16 rows,
// from `row`, and 16 elements of the inner index, from `k`, of the left operand [rows, k].
DEVICE void load_left(uint32_t (&r)[4], const bf16* x, int stride, int row, int k) {
  load_matrices<false>(r, x + (row + lane() % 16) * stride + k + lane() / 16 * 8);
}
// The same of [k, rows].
DEVICE void load_left_k_first(uint32_t (&r)[4], const bf16* x, int stride, int row, int k) {
  const int matrix = lane() / 8;
  load_matrices<true>(r, x + (k + matrix / 2 * 8 + lane() % 8) * stride + row + matrix % 2 * 8);
}
// Those of 16 columns of the right operand [columns, k]: two for each 8 columns.
DEVICE void load_right(uint32_t (&r)[4], const bf16* x, int stride, int column, int k) {
  const int matrix = lane() / 8;
  load_matrices<false>(r, x + (column + matrix / 2 * 8 + lane() % 8) * stride + k + matrix % 2 * 8);
}
// The same of [k, columns].
DEVICE void load_right_k_first(uint32_t (&r)[4], const bf16* x, int stride, int column, int k) {
  const int matrix = lane() / 8;
  load_matrices<true>(r, x + (k + matrix % 2 * 8 + lane() % 8) * stride + column + matrix / 2 * 8);
}
// Adds the products of 16 rows and 16 columns, of 16 elements of the inner index.
DEVICE void multiply_16(float (&first)[4], float (&second)[4], const uint32_t (&left)[4],
                        const uint32_t (&right)[4]) {
  mma(first, left, {right[0], right[1]});
  mma(second, left, {right[2], right[3]});
}

// Copies kVector elements of a row of which `left` are inside; zeros for the others. `wide`:
// whether 16 bytes can be copied at once.
DEVICE void copy_vector(bf16* to, const bf16* from, int64_t left, bool wide) {
  if (wide && left >= kVector) return copy_async(to, from);
  for (int v = 0; v < kVector; ++v) to[v] = v < left ? from[v] : bf16{};
}

}  // namespace fovea::cuda
