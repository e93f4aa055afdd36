// The logistic function and the hyperbolic tangent of a vector, and their derivatives.

#if defined(FOVEA_KERNELS_CPU_SIGMOID_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_SIGMOID_INL_H_
#undef FOVEA_KERNELS_CPU_SIGMOID_INL_H_
#else
#define FOVEA_KERNELS_CPU_SIGMOID_INL_H_
#endif

#include "kernels/cpu/exp-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// s = 1 / (1 + exp(-x)) and its derivative s (1 - s), both from exp(-|x|), which neither overflows
// nor cancels.
struct Sigmoid {
  Vector value, slope;

  HWY_INLINE explicit Sigmoid(Vector x) {
    const Vector e = exp_of(hn::Neg(hn::Abs(x)));
    const Vector larger = hn::Div(all(1), hn::Add(all(1), e)), smaller = hn::Mul(e, larger);
    value = hn::IfThenElse(hn::Lt(x, all(0)), smaller, larger);
    slope = hn::Mul(smaller, larger);
  }
};

// tanh(x) within 3 units in the last place. For |x| below 0.625, where 1 - 2 / (exp(2|x|) + 1)
// would cancel, uses the polynomial of Cephes' tanhf (Moshier 1992).
HWY_INLINE Vector tanh_of(Vector x) {
  const Vector size = hn::Abs(x), square = hn::Mul(x, x);
  Vector p = hn::MulAdd(all(-5.70498872745e-3f), square, all(2.06390887954e-2f));
  p = hn::MulAdd(p, square, all(-5.37397155531e-2f));
  p = hn::MulAdd(p, square, all(1.33314422036e-1f));
  p = hn::MulAdd(p, square, all(-3.33332819422e-1f));
  const Vector small = hn::MulAdd(hn::Mul(p, square), x, x);
  const Vector e = exp_of(hn::Add(size, size));
  const Vector large = hn::Sub(all(1), hn::Div(all(2), hn::Add(e, all(1))));
  return hn::IfThenElse(hn::Lt(size, all(0.625f)), small, hn::CopySign(large, x));
}

// 1 - tanh(x)^2 = 4 s (1 - s), s = sigmoid(2x).
HWY_INLINE Vector tanh_slope_of(Vector x) { return hn::Mul(all(4), Sigmoid(hn::Add(x, x)).slope); }

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
