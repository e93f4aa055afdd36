// The exponential function of a vector.

#if defined(FOVEA_KERNELS_CPU_EXP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_EXP_INL_H_
#undef FOVEA_KERNELS_CPU_EXP_INL_H_
#else
#define FOVEA_KERNELS_CPU_EXP_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// exp(x) within 2 units in the last place, from denormals to overflow; NaN stays NaN. Uses the
// method of Cephes' expf (Moshier 1992): x = n ln 2 + r with |r| <= ln 2 / 2; a polynomial for
// exp(r) is multiplied by 2^n.
HWY_INLINE Vector exp_of(Vector x) {
  const hn::RebindToSigned<Floats> words;
  // Outside these limits the result is infinity or 0. The limit is the first operand, so that
  // NaN stays NaN.
  x = larger(all(-104), smaller(all(89), x));
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the sum.
  const Vector magic = all(0x1.8p23f);
  const Vector shifted = hn::MulAdd(x, all(1.44269504f), magic);
  const Vector n = hn::Sub(shifted, magic);
  // ln 2 in two parts; the first has so few bits that its product with n is exact.
  Vector r = hn::NegMulAdd(n, all(0.693359375f), x);
  r = hn::NegMulAdd(n, all(-2.12194440e-4f), r);
  Vector p = hn::MulAdd(all(1.9875691500e-4f), r, all(1.3981999507e-3f));
  p = hn::MulAdd(p, r, all(8.3334519073e-3f));
  p = hn::MulAdd(p, r, all(4.1665795894e-2f));
  p = hn::MulAdd(p, r, all(1.6666665459e-1f));
  p = hn::MulAdd(p, r, all(5.0000001201e-1f));
  p = hn::Add(hn::MulAdd(p, hn::Mul(r, r), r), all(1));
  // 2^n in two factors, since 2^128 and 2^-150 are not floats.
  const auto exponent = hn::Sub(hn::BitCast(words, shifted), hn::BitCast(words, magic));
  const auto half = hn::ShiftRight<1>(exponent);
  const auto one = hn::Set(words, 0x3f800000);
  const Vector first = hn::BitCast(Floats(), hn::Add(hn::ShiftLeft<23>(half), one));
  const Vector second =
      hn::BitCast(Floats(), hn::Add(hn::ShiftLeft<23>(hn::Sub(exponent, half)), one));
  return hn::Mul(hn::Mul(p, first), second);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
