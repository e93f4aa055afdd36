// Functions of the columns of rows.

#include "kernels/cuda/numbers.h"
#include "kernels/cuda/rows.cuh"
//
#include "kernels/cpu/sigmoid-inl.h"

namespace fovea::cuda {

using cpu::one_number::tanh_of;

DEVICE float get_or_zero(In x, int64_t i) { return x.data != nullptr ? get(x, i) : 0; }

KERNEL(scale_columns)(Out y, In x, In factors, In bias, int64_t count, int64_t width) {
  for (int64_t e = first_element(); e < count * width; e += element_stride()) {
    const int64_t j = e % width;
    put(y, e, multiply_add(get(x, e), get(factors, j), get_or_zero(bias, j)));
  }
}

KERNEL(dynamic_tanh)(Out y, In x, In alpha, In weight, In bias, int64_t count, int64_t width) {
  const float slope = get(alpha, 0);
  for (int64_t e = first_element(); e < count * width; e += element_stride()) {
    const int64_t j = e % width;
    put(y, e, multiply_add(tanh_of(slope * get(x, e)), get(weight, j), get_or_zero(bias, j)));
  }
}

KERNEL(dynamic_tanh_backward_rows)
(Out dx, float* totals, In dy, In x, In alpha, In weight, int64_t count, int64_t width) {
  const float slope = get(alpha, 0);
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const auto g = [&](int64_t j) {
      const float t = tanh_of(slope * get(x, i * width + j));
      return get(dy, i * width + j) * get(weight, j) * multiply_add(-t, t, 1.0f);
    };
    const float total = sum_of_row(
        width, [&](int64_t j, float s) { return multiply_add(g(j), get(x, i * width + j), s); });
    if (lane() == 0) totals[i] = total;
    if (dx.data == nullptr) continue;
    for (int64_t j = lane(); j < width; j += kWarp) put(dx, i * width + j, slope * g(j));
  }
}

// The sums over the rows of each block of rows: dweight, then dbias. partial [blocks, 2, width]
KERNEL(dynamic_tanh_backward_columns)
(float* partial, In dy, In x, In alpha, const int64_t* blocks, int64_t width) {
  const int64_t block = block_y();
  const float slope = get(alpha, 0);
  for (int64_t j = first_element(); j < width; j += element_stride()) {
    float dweight = 0, dbias = 0;
    for (int64_t i = blocks[block]; i < blocks[block + 1]; ++i) {
      const float gradient = get(dy, i * width + j);
      dweight = multiply_add(gradient, tanh_of(slope * get(x, i * width + j)), dweight);
      dbias = gradient + dbias;
    }
    partial[2 * block * width + j] = dweight;
    partial[(2 * block + 1) * width + j] = dbias;
  }
}

KERNEL(copy_columns)(Out y, In x, ColumnCopy c) {
  const int64_t elements = c.rows * c.copies * c.width;
  for (int64_t e = first_element(); e < elements; e += element_stride()) {
    const int64_t copy = e / c.width, i = e % c.width;
    put(y, copy * c.to_stride + c.to + i, get(x, copy / c.copies * c.from_stride + c.from + i));
  }
}

KERNEL(copy_columns_backward)(Out dx, In dy, ColumnCopy c) {
  for (int64_t e = first_element(); e < c.rows * c.width; e += element_stride()) {
    const int64_t row = e / c.width, i = e % c.width;
    float sum = 0;
    for (int64_t copy = row * c.copies; copy < (row + 1) * c.copies; ++copy)
      sum += get(dy, copy * c.to_stride + c.to + i);
    put(dx, row * c.from_stride + c.from + i, sum);
  }
}

KERNEL(unfold)(Out y, In x, Windows w) {
  const int64_t width = w.width * w.kernel, elements = w.batch * w.count * width;
  for (int64_t e = first_element(); e < elements; e += element_stride()) {
    const int64_t row = e / width, c = e % width / w.kernel, j = e % w.kernel;
    const int64_t t = row % w.count * w.stride - w.padding + j;
    const bool inside = t >= 0 && t < w.tokens;
    put(y, e, inside ? get(x, (row / w.count * w.tokens + t) * w.width + c) : 0);
  }
}

// Each token sums the gradients of the windows that contain it, the last window first.
KERNEL(unfold_backward)(Out dx, In dy, Windows w) {
  for (int64_t e = first_element(); e < w.batch * w.tokens * w.width; e += element_stride()) {
    const int64_t row = e / w.width, c = e % w.width;
    float sum = 0;
    for (int64_t j = 0; j < w.kernel; ++j) {
      const int64_t begin = row % w.tokens + w.padding - j;  // start of the window, with padding
      if (begin < 0 || begin % w.stride != 0 || begin / w.stride >= w.count) continue;
      const int64_t window = row / w.tokens * w.count + begin / w.stride;
      sum += get(dy, (window * w.width + c) * w.kernel + j);
    }
    put(dx, e, sum);
  }
}

}  // namespace fovea::cuda
