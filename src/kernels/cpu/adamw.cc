#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adamw.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

void adamw_step(float* weight, float* m, float* v, const float* gradient, const AdamW& step,
                int64_t size) {
  const Vector beta1 = all(step.beta1), rest1 = all(1 - step.beta1);
  const Vector beta2 = all(step.beta2), rest2 = all(1 - step.beta2);
  const Vector unbias1 = all(1 / step.correction1), unbias2 = all(1 / step.correction2);
  parallel_for(size, kGrainElements / 4, [&](int64_t begin, int64_t end) HWY_ATTR {
    each_vector(end - begin, [&](int64_t offset, int64_t, auto access) HWY_ATTR {
      const int64_t i = begin + offset;
      const Vector g = hn::Mul(access.load(gradient + i), all(step.gradient_scale));
      const Vector first = hn::MulAdd(beta1, access.load(m + i), hn::Mul(rest1, g));
      const Vector second = hn::MulAdd(beta2, access.load(v + i), hn::Mul(hn::Mul(rest2, g), g));
      const Vector deviation = hn::Add(hn::Sqrt(hn::Mul(second, unbias2)), all(step.epsilon));
      const Vector old = access.load(weight + i);
      const Vector direction =
          hn::MulAdd(all(step.decay), old, hn::Div(hn::Mul(first, unbias1), deviation));
      access.store(hn::NegMulAdd(all(step.rate), direction, old), weight + i);
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
