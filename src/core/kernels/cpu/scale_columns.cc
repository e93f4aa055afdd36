#include <algorithm>

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/scale_columns.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/scratch.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void scale_columns_of_rows(Out y, In x, In factors, In bias, Rows rows) {
  const int64_t width = rows.width;
  parallel_for(rows.count, grain_of(rows), [&](int64_t first, int64_t last) HWY_ATTR {
    Scratch scratch(4 * Scratch::size_of(width));
    float* const bias_room = scratch.take(width);
    std::fill_n(bias_room, width, 0.0f);  // a missing bias counts as zeros
    const float* biases = bias.data == nullptr ? bias_room : widened(bias, 0, width, bias_room);
    const float* factor = widened(factors, 0, width, scratch.take(width));
    float *const input = scratch.take(width), *const output = scratch.take(width);
    const auto value = [](Vector v, Vector f, Vector b) HWY_ATTR { return hn::MulAdd(v, f, b); };
    for (int64_t i = first; i < last; ++i) {
      float* room = room_for(y, i * width, output);
      map(room, width, value, widened(x, i * width, width, input), factor, biases);
      narrow_into(y, i * width, width, room);
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(scale_columns_of_rows);

void scale_columns(Out y, In x, In factors, In bias, Rows rows) {
  check_stored_types(y, x, factors, bias);
  HWY_DYNAMIC_DISPATCH(scale_columns_of_rows)(y, x, factors, bias, rows);
}

}  // namespace fovea::cpu
#endif
