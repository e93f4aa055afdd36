#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/dynamic_tanh.cc"
#include <hwy/foreach_target.h>

#include "kernels/cpu/row_blocks-inl.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/sigmoid-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

HWY_INLINE float only_element(In x) {
  float scratch = 0;
  return *widened(x, 0, 1, &scratch);
}

void tanh_of_rows(Out y, In x, In alpha, In weight, In bias, Rows rows) {
  const int64_t width = rows.width;
  const float slope = only_element(alpha);
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch(4 * Scratch::size_of(width));
    float* const bias_room = scratch.take(width);
    std::fill_n(bias_room, width, 0.0f);  // a missing bias counts as zeros
    const float* biases = bias.data == nullptr ? bias_room : widened(bias, 0, width, bias_room);
    const float* weights = widened(weight, 0, width, scratch.take(width));
    float *const input = scratch.take(width), *const output = scratch.take(width);
    const auto value = [slope](Vector v, Vector w, Vector b)
                           HWY_ATTR { return hn::MulAdd(tanh_of(hn::Mul(all(slope), v)), w, b); };
    for (int64_t i = first; i < last; ++i) {
      float* room = room_for(y, i * width, output);
      map(room, width, value, widened(x, i * width, width, input), weights, biases);
      narrow_into(y, i * width, width, room);
    }
  });
}

// The sums over the rows of a block: of dweight, of dbias, and of dalpha.
struct TanhSums {
  float *weight, *bias, *alpha;
};

// dx = alpha * g, with t = tanh(alpha * x) and g = dy * weight * (1 - t^2). Adds the row's parts of
// the gradients of the parameters to `sums`.
HWY_INLINE void tanh_row_backward(float* dx, const TanhSums& sums, const float* dy, const float* x,
                                  const float* weight, float alpha, int64_t width) {
  Sum sum;
  each_vector(width, [&](int64_t j, int64_t part, auto access) HWY_ATTR {
    const Vector v = access.load(x + j), gradient = access.load(dy + j);
    const Vector t = tanh_of(hn::Mul(all(alpha), v));
    const Vector g =
        hn::Mul(hn::Mul(gradient, access.load(weight + j)), hn::NegMulAdd(t, t, all(1)));
    access.store(hn::Mul(all(alpha), g), dx + j);
    sum.add_product(g, v, part, access);
    access.store(hn::MulAdd(gradient, t, access.load(sums.weight + j)), sums.weight + j);
    access.store(hn::Add(gradient, access.load(sums.bias + j)), sums.bias + j);
  });
  *sums.alpha += sum.total();
}

void tanh_of_rows_backward(Out dx, Out dalpha, Out dweight, Out dbias, In dy, In x, In alpha,
                           In weight, Rows rows) {
  const RowBlocks blocks(rows);
  const int64_t width = rows.width, stride = 2 * width + 1;
  const int64_t grain = grain_of(rows) / kRowBlock + 1;
  const float slope = only_element(alpha);
  std::vector<float> partial(static_cast<size_t>(blocks.count() * stride));
  parallel_for(blocks.count(), grain, [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch(4 * Scratch::size_of(width));
    const float* weights = widened(weight, 0, width, scratch.take(width));
    float *const gradient = scratch.take(width), *const input = scratch.take(width),
                 *const output = scratch.take(width);
    for (int64_t block = first; block < last; ++block) {
      float* const sums = partial.data() + block * stride;
      for (int64_t i = blocks.begin(block); i < blocks.end(block); ++i) {
        float* room = room_for(dx, i * width, output);
        tanh_row_backward(room, {sums, sums + width, sums + 2 * width},
                          widened(dy, i * width, width, gradient),
                          widened(x, i * width, width, input), weights, slope, width);
        narrow_into(dx, i * width, width, room);
      }
    }
  });
  add_blocks(dweight, partial.data(), blocks, stride, width);
  add_blocks(dbias, partial.data() + width, blocks, stride, width);
  add_blocks(dalpha, partial.data() + 2 * width, blocks, stride, 1);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(tanh_of_rows);
HWY_EXPORT(tanh_of_rows_backward);

void dynamic_tanh(Out y, In x, In alpha, In weight, In bias, Rows rows) {
  check_stored_types(y, x, alpha, weight, bias);
  HWY_DYNAMIC_DISPATCH(tanh_of_rows)(y, x, alpha, weight, bias, rows);
}

void dynamic_tanh_backward(Out dx, Out dalpha, Out dweight, Out dbias, In dy, In x, In alpha,
                           In weight, Rows rows) {
  check_stored_types(dx, dalpha, dweight, dbias, dy, x, alpha, weight);
  HWY_DYNAMIC_DISPATCH(tanh_of_rows_backward)
  (dx, dalpha, dweight, dbias, dy, x, alpha, weight, rows);
}

}  // namespace fovea::cpu
#endif
