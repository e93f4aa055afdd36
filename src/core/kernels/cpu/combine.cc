#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/combine.cc"
#include <hwy/foreach_target.h>

#include <vector>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

HWY_INLINE float weight_at(In weights, int64_t i) {
  float scratch = 0;
  return *widened(weights, i, 1, &scratch);
}

void combine_rows(Out y, In z, const int32_t* slots, In weights, int64_t choices, Rows rows) {
  const int64_t width = rows.width, work = width * choices;
  parallel_for(rows.count, grain_of({rows.count, work}), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> sum(static_cast<size_t>(width)), scratch(sum);
    for (int64_t row = first; row < last; ++row) {
      std::fill(sum.begin(), sum.end(), 0.0f);
      for (int64_t j = row * choices; j < (row + 1) * choices; ++j) {
        const float weight = weight_at(weights, j);
        const auto add = [weight](Vector s, Vector v)
                             HWY_ATTR { return hn::MulAdd(all(weight), v, s); };
        map(sum.data(), width, add, sum.data(),
            widened(z, slots[j] * width, width, scratch.data()));
      }
      narrow_into(y, row * width, width, sum.data());
    }
  });
}

void combine_rows_backward(Out dz, Out dweights, In dy, In z, const int32_t* slots, In weights,
                           int64_t choices, Rows rows) {
  const int64_t width = rows.width, work = width * choices;
  parallel_for(rows.count, grain_of({rows.count, work}), [&](int64_t first, int64_t last) HWY_ATTR {
    std::vector<float> gradient(static_cast<size_t>(width)), value(gradient), result(gradient);
    for (int64_t j = first * choices; j < last * choices; ++j) {
      const float* g = widened(dy, j / choices * width, width, gradient.data());
      const float* v = widened(z, slots[j] * width, width, value.data());
      const float weight = weight_at(weights, j);
      Sum sum;
      each_vector(width, [&](int64_t c, int64_t part, auto access) HWY_ATTR {
        sum.add_product(access.load(g + c), access.load(v + c), part, access);
      });
      float dot = sum.total();
      narrow_into(dweights, j, 1, &dot);
      float* room = room_for(dz, slots[j] * width, result.data());
      map(room, width, [weight](Vector a) HWY_ATTR { return hn::Mul(all(weight), a); }, g);
      narrow_into(dz, slots[j] * width, width, room);
    }
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(combine_rows);
HWY_EXPORT(combine_rows_backward);

void combine(Out y, In z, Indices slots, In weights, int64_t choices, Rows rows) {
  check_stored_types(y, z, weights);
  HWY_DYNAMIC_DISPATCH(combine_rows)(y, z, slots, weights, choices, rows);
}

void combine_backward(Out dz, Out dweights, In dy, In z, Indices slots, In weights, int64_t choices,
                      Rows rows) {
  check_stored_types(dz, dweights, dy, z, weights);
  HWY_DYNAMIC_DISPATCH(combine_rows_backward)
  (dz, dweights, dy, z, slots, weights, choices, rows);
}

}  // namespace fovea::cpu
#endif
