// LayerNorm and RMSNorm.

#include "kernels/cuda/rows.cuh"

namespace fovea::cuda {

KERNEL(norm_rows)
(Out y, Out mean, Out scale, In x, In weight, In bias, NormEpsilon epsilon, bool centred,
 int64_t count, int64_t width) {
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const auto at = [&](int64_t j) { return get(x, i * width + j); };
    const auto share = static_cast<float>(width);
    float centre = 0;
    if (centred) centre = sum_of_row(width, [&](int64_t j, float s) { return s + at(j); }) / share;
    const float variance = sum_of_row(width,
                                      [&](int64_t j, float s) {
                                        const float difference = at(j) - centre;
                                        return multiply_add(difference, difference, s);
                                      }) /
                           share;
    const float factor = epsilon.outside ? 1 / (sqrtf(variance) + epsilon.value)
                                         : 1 / sqrtf(variance + epsilon.value);
    for (int64_t j = lane(); j < width; j += kWarp) {
      const float added = bias.data != nullptr ? get(bias, j) : 0;
      put(y, i * width + j, multiply_add((at(j) - centre) * factor, get(weight, j), added));
    }
    if (lane() != 0) continue;
    if (mean.data != nullptr) put(mean, i, centre);
    if (scale.data != nullptr) put(scale, i, factor);
  }
}

// (deviation + epsilon) / deviation if epsilon is outside the root, else 1; 0 for a row of equal
// numbers.
DEVICE float steepness(float scale, NormEpsilon epsilon) {
  if (!epsilon.outside) return 1;
  const float share = 1 - epsilon.value * scale;  // deviation / (deviation + epsilon)
  return share > 0 ? 1 / share : 0;
}

// With x_hat = (x - mean) scale and g = dy weight: dx (+)= scale (g - mean(g) - x_hat mean(g x_hat)
// steepness), without mean(g) if not centred.
KERNEL(norm_backward_rows)
(Out dx, In dy, In x, In mean, In scale, In weight, NormEpsilon epsilon, bool centred,
 int64_t count, int64_t width) {
  const float share = 1 / static_cast<float>(width);
  for (int64_t i = first_row(); i < count; i += row_stride()) {
    const float centre = centred ? get(mean, i) : 0, factor = get(scale, i);
    const auto x_hat = [&](int64_t j) { return (get(x, i * width + j) - centre) * factor; };
    const auto g = [&](int64_t j) { return get(dy, i * width + j) * get(weight, j); };
    float mean_g = 0;
    if (centred) mean_g = sum_of_row(width, [&](int64_t j, float s) { return s + g(j); }) * share;
    const float slope =
        sum_of_row(width, [&](int64_t j, float s) { return multiply_add(g(j), x_hat(j), s); }) *
        share * steepness(factor, epsilon);
    for (int64_t j = lane(); j < width; j += kWarp)
      put(dx, i * width + j, factor * multiply_add(-x_hat(j), slope, g(j) - mean_g));
  }
}

// The sums over the rows of each block of rows: dweight, then dbias. partial [blocks, 2, width]
KERNEL(norm_backward_columns)
(float* partial, In dy, In x, In mean, In scale, bool centred, const int64_t* blocks,
 int64_t width) {
  const int64_t block = block_y();
  for (int64_t j = first_element(); j < width; j += element_stride()) {
    float dweight = 0, dbias = 0;
    for (int64_t i = blocks[block]; i < blocks[block + 1]; ++i) {
      const float centre = centred ? get(mean, i) : 0;
      const float gradient = get(dy, i * width + j);
      dweight = multiply_add(gradient, (get(x, i * width + j) - centre) * get(scale, i), dweight);
      dbias += gradient;
    }
    partial[2 * block * width + j] = dweight;
    partial[(2 * block + 1) * width + j] = dbias;
  }
}

}  // namespace fovea::cuda
