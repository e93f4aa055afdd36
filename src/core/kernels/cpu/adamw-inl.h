// One step of AdamW for a vector of weights, whatever holds the moments.

#if defined(FOVEA_KERNELS_CPU_ADAMW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ADAMW_INL_H_
#undef FOVEA_KERNELS_CPU_ADAMW_INL_H_
#else
#define FOVEA_KERNELS_CPU_ADAMW_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

struct AdamWStep {
  const AdamW& step;
  Vector beta1 = all(step.beta1), rest1 = all(1 - step.beta1);
  Vector beta2 = all(step.beta2), rest2 = all(1 - step.beta2);
  Vector unbias1 = all(1 / step.correction1), unbias2 = all(1 / step.correction2);

  HWY_INLINE explicit AdamWStep(const AdamW& adamw) : step(adamw) {}

  // Updates the moments `first` and `second`, and then the weights.
  template <class Access>
  HWY_INLINE void operator()(Access access, float* weight, Vector& first, Vector& second,
                             const float* gradient) const {
    const Vector g = hn::Mul(access.load(gradient), all(step.gradient_scale));
    first = hn::MulAdd(beta1, first, hn::Mul(rest1, g));
    second = hn::MulAdd(beta2, second, hn::Mul(hn::Mul(rest2, g), g));
    const Vector deviation = hn::Add(hn::Sqrt(hn::Mul(second, unbias2)), all(step.epsilon));
    const Vector old = access.load(weight);
    const Vector direction =
        hn::MulAdd(all(step.decay), old, hn::Div(hn::Mul(first, unbias1), deviation));
    access.store(hn::NegMulAdd(all(step.rate), direction, old), weight);
  }
};

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
