// The natural logarithm of a vector.

#if defined(FOVEA_KERNELS_CPU_LOG_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_LOG_INL_H_
#undef FOVEA_KERNELS_CPU_LOG_INL_H_
#else
#define FOVEA_KERNELS_CPU_LOG_INL_H_
#endif

#include <limits>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// log(x) within 2 units in the last place; -infinity at 0, NaN below 0. Uses the method of Cephes'
// logf (Moshier 1992): x = m 2^n with m from sqrt(1/2) to sqrt(2); n ln 2 is added to a polynomial
// for log(m).
HWY_INLINE Vector log_of(Vector x) {
  const hn::RebindToSigned<Floats> words;
  const float infinity = std::numeric_limits<float>::infinity();
  // A denormal number is scaled by 2^23 first.
  const auto small = hn::Lt(x, all(0x1p-126f));
  const Vector normal = hn::IfThenElse(small, hn::Mul(x, all(0x1p23f)), x);
  // The exponent counts from sqrt(1/2), whose bits are 0x3f3504f3.
  const auto bits = hn::Sub(hn::BitCast(words, normal), hn::Set(words, 0x3f3504f3));
  const auto exponent = hn::ShiftRight<23>(bits);
  const Vector m =
      hn::BitCast(Floats(), hn::Sub(hn::BitCast(words, normal), hn::ShiftLeft<23>(exponent)));
  const Vector n = hn::Sub(hn::ConvertTo(Floats(), exponent), hn::IfThenElseZero(small, all(23)));
  const Vector r = hn::Sub(m, all(1)), square = hn::Mul(r, r);
  Vector p = hn::MulAdd(all(7.0376836292e-2f), r, all(-1.1514610310e-1f));
  p = hn::MulAdd(p, r, all(1.1676998740e-1f));
  p = hn::MulAdd(p, r, all(-1.2420140846e-1f));
  p = hn::MulAdd(p, r, all(1.4249322787e-1f));
  p = hn::MulAdd(p, r, all(-1.6668057665e-1f));
  p = hn::MulAdd(p, r, all(2.0000714765e-1f));
  p = hn::MulAdd(p, r, all(-2.4999993993e-1f));
  p = hn::MulAdd(p, r, all(3.3333331174e-1f));
  Vector y = hn::Mul(hn::Mul(p, r), square);
  // ln 2 in two parts, as in exp_of.
  y = hn::MulAdd(n, all(-2.12194440e-4f), y);
  y = hn::NegMulAdd(square, all(0.5f), y);
  y = hn::MulAdd(n, all(0.693359375f), hn::Add(r, y));
  y = hn::IfThenElse(hn::Ge(x, all(infinity)), x, y);
  y = hn::IfThenElse(hn::Eq(x, all(0)), all(-infinity), y);
  // Not "x < 0", which is false for NaN.
  return hn::IfThenElse(hn::Ge(x, all(0)), y, all(std::numeric_limits<float>::quiet_NaN()));
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
