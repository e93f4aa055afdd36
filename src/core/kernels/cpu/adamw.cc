#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/adamw-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void adamw_step(float* weight, float* m, float* v, const float* gradient, const AdamW& step,
                int64_t size) {
  const AdamWStep update(step);
  parallel_for(size, kGrainElements / 4, [&](int64_t begin, int64_t end) HWY_ATTR {
    each_vector(end - begin, [&](int64_t offset, int64_t, auto access) HWY_ATTR {
      const int64_t i = begin + offset;
      Vector first = access.load(m + i), second = access.load(v + i);
      update(access, weight + i, first, second, gradient + i);
      access.store(first, m + i);
      access.store(second, v + i);
    });
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(adamw_step);

void adamw(Out weight, Out m, Out v, In gradient, const AdamW& step, int64_t size) {
  HWY_DYNAMIC_DISPATCH(adamw_step)
  (static_cast<float*>(weight.data), static_cast<float*>(m.data), static_cast<float*>(v.data),
   static_cast<const float*>(gradient.data), step, size);
}

}  // namespace fovea::cpu
#endif
