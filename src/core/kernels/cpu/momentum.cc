// The rules that keep one moment of each weight.

#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/momentum.cc"
#include <hwy/foreach_target.h>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Calls step(access, i) for vectors that cover the elements, on all threads.
template <class Step>
void each_weight(int64_t size, const Step& step) {
  parallel_for(size, kGrainElements / 4, [&](int64_t begin, int64_t end) HWY_ATTR {
    each_vector(end - begin, [&](int64_t offset, int64_t, auto access)
                                 HWY_ATTR { step(access, begin + offset); });
  });
}

void sgd_step(float* weight, float* m, const float* gradient, const Sgd& step, int64_t size) {
  each_weight(size, [&](auto access, int64_t i) HWY_ATTR {
    const Vector old = access.load(weight + i), momentum = all(step.momentum);
    const Vector g = hn::MulAdd(all(step.gradient_scale), access.load(gradient + i),
                                hn::Mul(all(step.decay), old));
    Vector direction = g;
    if (m != nullptr) {
      const Vector sum = hn::MulAdd(momentum, access.load(m + i), g);
      access.store(sum, m + i);
      direction = step.nesterov ? hn::MulAdd(momentum, sum, g) : sum;
    }
    access.store(hn::NegMulAdd(all(step.rate), direction, old), weight + i);
  });
}

void lion_step(float* weight, float* m, const float* gradient, const Lion& step, int64_t size) {
  const auto mixed = [](float beta, Vector old, Vector g)
                         HWY_ATTR { return hn::MulAdd(all(beta), old, hn::Mul(all(1 - beta), g)); };
  each_weight(size, [&](auto access, int64_t i) HWY_ATTR {
    const Vector g = hn::Mul(all(step.gradient_scale), access.load(gradient + i));
    const Vector first = access.load(m + i), old = access.load(weight + i);
    const Vector sum = mixed(step.beta1, first, g);
    const Vector sign = hn::IfThenZeroElse(hn::Eq(sum, all(0)), hn::CopySign(all(1), sum));
    access.store(mixed(step.beta2, first, g), m + i);
    const Vector direction = hn::MulAdd(all(step.decay), old, sign);
    access.store(hn::NegMulAdd(all(step.rate), direction, old), weight + i);
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {

HWY_EXPORT(sgd_step);
HWY_EXPORT(lion_step);

void sgd(Out weight, Out m, In gradient, const Sgd& step, int64_t size) {
  HWY_DYNAMIC_DISPATCH(sgd_step)
  (static_cast<float*>(weight.data), static_cast<float*>(m.data),
   static_cast<const float*>(gradient.data), step, size);
}

void lion(Out weight, Out m, In gradient, const Lion& step, int64_t size) {
  HWY_DYNAMIC_DISPATCH(lion_step)
  (static_cast<float*>(weight.data), static_cast<float*>(m.data),
   static_cast<const float*>(gradient.data), step, size);
}

}  // namespace fovea::cpu
#endif
