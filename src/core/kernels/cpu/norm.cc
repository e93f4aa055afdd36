#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/norm.cc"
#include <hwy/foreach_target.h>

#include <cmath>

#include "kernels/cpu/row_blocks-inl.h"
#include "kernels/cpu/scratch.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

HWY_INLINE float row_mean(const float* x, int64_t width) {
  Sum sum;
  each_vector(width, [&](int64_t j, int64_t part, auto access)
                         HWY_ATTR { sum.add(access.load(x + j), part, access); });
  return sum.total() / static_cast<float>(width);
}

// Returns 1 / (standard deviation of x around `centre`), with epsilon.
HWY_INLINE float row_scale(const float* x, float centre, NormEpsilon epsilon, int64_t width) {
  Sum squares;
  each_vector(width, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
    const Vector difference = hn::Sub(access.load(x + j), all(centre));
    squares.add_product(difference, difference, part, access);
  });
  const float variance = squares.total() / static_cast<float>(width);
  if (epsilon.outside) return 1 / (std::sqrt(variance) + epsilon.value);
  return 1 / std::sqrt(variance + epsilon.value);
}

// y = (x - mean) * scale * weight + bias; RMSNorm is not centred: it uses a mean of 0.
void norm(Out y, Out mean, Out scale, In x, In weight, In bias, NormEpsilon epsilon, bool centred,
          Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch(4 * Scratch::size_of(width));
    float* const bias_room = scratch.take(width);
    std::fill_n(bias_room, width, 0.0f);  // a missing bias counts as zeros
    const float* biases = bias.data == nullptr ? bias_room : widened(bias, 0, width, bias_room);
    const float* weights = widened(weight, 0, width, scratch.take(width));
    float *const input = scratch.take(width), *const output = scratch.take(width);
    for (int64_t i = first; i < last; ++i) {
      const float* from = widened(x, i * width, width, input);
      const float centre = centred ? row_mean(from, width) : 0;
      const float factor = row_scale(from, centre, epsilon, width);
      float* room = room_for(y, i * width, output);
      const auto normalise = [&](Vector v, Vector w, Vector b) HWY_ATTR {
        return hn::MulAdd(hn::Mul(hn::Sub(v, all(centre)), all(factor)), w, b);
      };
      map(room, width, normalise, from, weights, biases);
      narrow_into(y, i * width, width, room);
      if (mean.data != nullptr) static_cast<float*>(mean.data)[i] = centre;
      if (scale.data != nullptr) static_cast<float*>(scale.data)[i] = factor;
    }
  });
}

// With x_hat = (x - centre) * factor and g = dy * weight: adds g and g * x_hat over a row to the
// sums that dx needs; also dweight += dy * x_hat and dbias += dy.
HWY_INLINE void collect(Sum& sum_g, Sum& sum_g_x_hat, float* dweight, float* dbias, const float* dy,
                        const float* x, const float* weight, float centre, float factor,
                        int64_t width) {
  each_vector(width, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
    const Vector x_hat = hn::Mul(hn::Sub(access.load(x + j), all(centre)), all(factor));
    const Vector gradient = access.load(dy + j);
    const Vector g = hn::Mul(gradient, access.load(weight + j));
    sum_g.add(g, part, access);
    sum_g_x_hat.add_product(g, x_hat, part, access);
    access.store(hn::MulAdd(gradient, x_hat, access.load(dweight + j)), dweight + j);
    access.store(hn::Add(gradient, access.load(dbias + j)), dbias + j);
  });
}

// Returns (deviation + epsilon) / deviation if epsilon is outside the root, else 1; 0 for a row of
// equal numbers.
HWY_INLINE float steepness(float scale, NormEpsilon epsilon) {
  if (!epsilon.outside) return 1;
  const float share = 1 - epsilon.value * scale;  // deviation / (deviation + epsilon)
  return share > 0 ? 1 / share : 0;
}

// dx = factor * (g - mean(g) - x_hat * mean(g * x_hat) * steepness); RMSNorm, which does not
// subtract the mean, omits mean(g).
void norm_backward(Out dx, Out dweight, Out dbias, In dy, In x, In mean, In scale, In weight,
                   NormEpsilon epsilon, bool centred, Rows rows) {
  const RowBlocks blocks(rows);
  const int64_t width = rows.width, grain = grain_of(rows) / kRowBlock + 1;
  const float share = 1 / static_cast<float>(width);
  // Per block: dweight, then dbias.
  std::vector<float> partial(static_cast<size_t>(blocks.count() * 2 * width));
  const auto row_backward = [&](int64_t i, float* sums_of_block, const float* weights,
                                float* const rooms[3]) HWY_ATTR {
    const float* gradients = widened(dy, i * width, width, rooms[0]);
    const float* inputs = widened(x, i * width, width, rooms[1]);
    const float centre = centred ? static_cast<const float*>(mean.data)[i] : 0;
    const float factor = static_cast<const float*>(scale.data)[i];
    Sum sum_g, sum_g_x_hat;
    collect(sum_g, sum_g_x_hat, sums_of_block, sums_of_block + width, gradients, inputs, weights,
            centre, factor, width);
    const Vector mean_g = all(centred ? sum_g.total() * share : 0),
                 slope = all(sum_g_x_hat.total() * share * steepness(factor, epsilon));
    const auto gradient = [&](Vector g, Vector v, Vector w) HWY_ATTR {
      const Vector x_hat = hn::Mul(hn::Sub(v, all(centre)), all(factor));
      return hn::Mul(all(factor), hn::NegMulAdd(x_hat, slope, hn::Sub(hn::Mul(g, w), mean_g)));
    };
    if (dx.data == nullptr) return;
    float* room = room_for(dx, i * width, rooms[2]);
    map(room, width, gradient, gradients, inputs, weights);
    narrow_into(dx, i * width, width, room);
  };
  parallel_for(blocks.count(), grain, [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch(4 * Scratch::size_of(width));
    const float* weights = widened(weight, 0, width, scratch.take(width));
    float* const rooms[] = {scratch.take(width), scratch.take(width), scratch.take(width)};
    for (int64_t block = first; block < last; ++block)
      for (int64_t i = blocks.begin(block); i < blocks.end(block); ++i)
        row_backward(i, partial.data() + block * 2 * width, weights, rooms);
  });
  add_blocks(dweight, partial.data(), blocks, 2 * width, width);
  add_blocks(dbias, partial.data() + width, blocks, 2 * width, width);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(norm);
HWY_EXPORT(norm_backward);

void layer_norm(Out y, Out mean, Out scale, In x, In weight, In bias, NormEpsilon epsilon,
                Rows rows) {
  check_stored_types(y, x, weight, bias);
  HWY_DYNAMIC_DISPATCH(norm)(y, mean, scale, x, weight, bias, epsilon, true, rows);
}

void layer_norm_backward(Out dx, Out dweight, Out dbias, In dy, In x, In mean, In scale, In weight,
                         NormEpsilon epsilon, Rows rows) {
  check_stored_types(dx, dweight, dbias, dy, x, weight);
  HWY_DYNAMIC_DISPATCH(norm_backward)
  (dx, dweight, dbias, dy, x, mean, scale, weight, epsilon, true, rows);
}

void rms_norm(Out y, Out scale, In x, In weight, float epsilon, Rows rows) {
  check_stored_types(y, x, weight);
  HWY_DYNAMIC_DISPATCH(norm)(y, Out{}, scale, x, weight, In{}, epsilon, false, rows);
}

void rms_norm_backward(Out dx, Out dweight, In dy, In x, In scale, In weight, Rows rows) {
  check_stored_types(dx, dweight, dy, x, weight);
  const NormEpsilon inside = 0;
  HWY_DYNAMIC_DISPATCH(norm_backward)
  (dx, dweight, Out{}, dy, x, In{}, scale, weight, inside, false, rows);
}

}  // namespace fovea::cpu
#endif
