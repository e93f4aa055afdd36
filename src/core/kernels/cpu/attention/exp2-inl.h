// Powers of two and tanh for the scores of attention.

#if defined(FOVEA_KERNELS_CPU_ATTENTION_EXP2_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ATTENTION_EXP2_INL_H_
#undef FOVEA_KERNELS_CPU_ATTENTION_EXP2_INL_H_
#else
#define FOVEA_KERNELS_CPU_ATTENTION_EXP2_INL_H_
#endif

#include <numbers>

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// 2^x for -126 <= x <= 127; exactly 0 for x <= -127 (and -inf), NaN for NaN. The coefficients, from
// the highest power down to the first, are those of a polynomial for 2^f, -1/2 <= f <= 1/2.
template <size_t kDegree>
HWY_INLINE Vector exp2_by(const float (&coefficients)[kDegree], Vector x) {
  const Floats tag;
  const hn::RebindToUnsigned<Floats> bits;
  // At 1.5 * 2^23 the spacing of floats is 1: adding rounds x and leaves x + 127, the exponent's
  // bits, in the lowest bits.
  const Vector bias = hn::Set(tag, 0x1.8p23f + 127);
  // x is the second operand, so that NaN stays NaN.
  x = larger(hn::Set(tag, -127.0f), x);
  const Vector biased = hn::Add(x, bias);
  const Vector f = hn::Sub(x, hn::Sub(biased, bias));
  Vector sum = hn::Set(tag, coefficients[0]);
#pragma GCC unroll 8
  for (size_t i = 1; i < kDegree; ++i) sum = hn::MulAdd(sum, f, hn::Set(tag, coefficients[i]));
  sum = hn::MulAdd(sum, f, hn::Set(tag, 1.0f));
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(bits, biased));
  return hn::Mul(sum, hn::BitCast(tag, exponent));
}
// With a relative error under 2e-7: the polynomial of exp2f in Cephes (Moshier).
HWY_INLINE Vector exp2(Vector x) {
  constexpr float kCephes[] = {1.535336188319500e-4f, 1.339887440266574e-3f, 9.618437357674640e-3f,
                               5.550332471162809e-2f, 2.402264791363012e-1f, 6.931472028550421e-1f};
  return exp2_by(kCephes, x);
}
// With a relative error under 3e-6 (minimax), for results that are then rounded to bf16.
HWY_INLINE Vector short_exp2(Vector x) {
  constexpr float kMinimax[] = {9.58285344e-3f, 5.59064271e-2f, 2.40240986e-1f, 6.93124193e-1f};
  return exp2_by(kMinimax, x);
}

// tanh with a relative error under 2e-7; a small x uses a series, since 1 - 2 / (exp(2x) + 1) would
// cancel.
HWY_INLINE Vector tanh_of_score(Vector x) {
  const Floats tag;
  const Vector one = hn::Set(tag, 1.0f), square = hn::Mul(x, x);
  const Vector bounded = smaller(larger(x, hn::Set(tag, -20.0f)), hn::Set(tag, 20.0f));
  const Vector power = exp2(hn::Mul(bounded, hn::Set(tag, 2 * std::numbers::log2e_v<float>)));
  const Vector large = hn::Sub(one, hn::Div(hn::Set(tag, 2.0f), hn::Add(power, one)));
  Vector series = hn::Set(tag, -17.0f / 315);
  series = hn::MulAdd(series, square, hn::Set(tag, 2.0f / 15));
  series = hn::MulAdd(series, square, hn::Set(tag, -1.0f / 3));
  series = hn::MulAdd(series, square, one);
  return hn::IfThenElse(hn::Lt(square, hn::Set(tag, 0.04f)), hn::Mul(series, x), large);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
