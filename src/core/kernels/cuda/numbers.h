#pragma once

// The functions of the CPU's vectors for one number, so that exp-inl.h, activation-inl.h and other
// files of formulas also compile for a GPU, and have the same bits there. Include this file before
// them: it takes the place of simd-inl.h. The names are those of Highway.

#include <cmath>
#include <cstdint>
#include <limits>

#include "kernels/cuda/dialect.h"

#define FOVEA_KERNELS_CPU_SIMD_INL_H_

#define HWY_BEFORE_NAMESPACE() static_assert(true)
#define HWY_AFTER_NAMESPACE() static_assert(true)
#define HWY_NAMESPACE one_number
#define HWY_INLINE DEVICE
#define HWY_ATTR

namespace fovea::cpu::one_number {

struct Floats {};
using Vector = float;

namespace hn {

struct Words {};  // a tag: 32-bit integers
template <class>
using RebindToSigned = Words;
template <class>
using RebindToUnsigned = Words;

DEVICE int32_t BitCast(Words, float x) { return static_cast<int32_t>(cuda::bits_of(x)); }
DEVICE float BitCast(Floats, int32_t x) { return cuda::number_of(static_cast<uint32_t>(x)); }
DEVICE int32_t Set(Words, int32_t x) { return x; }
DEVICE float Set(Floats, float x) { return x; }
DEVICE float ConvertTo(Floats, int32_t x) { return static_cast<float>(x); }
template <int bits>
DEVICE int32_t ShiftRight(int32_t x) {
  return x >> bits;
}
template <int bits>
DEVICE int32_t ShiftLeft(int32_t x) {
  return static_cast<int32_t>(static_cast<uint32_t>(x) << bits);
}

DEVICE float Add(float a, float b) { return a + b; }
DEVICE float Sub(float a, float b) { return a - b; }
DEVICE int32_t Add(int32_t a, int32_t b) { return a + b; }
DEVICE int32_t Sub(int32_t a, int32_t b) { return a - b; }
DEVICE float Mul(float a, float b) { return a * b; }
DEVICE float Div(float a, float b) { return a / b; }
DEVICE float Neg(float a) { return -a; }
DEVICE float Abs(float a) { return fabsf(a); }
DEVICE float Sqrt(float a) { return sqrtf(a); }
DEVICE float CopySign(float a, float sign) { return copysignf(a, sign); }
DEVICE float MulAdd(float a, float b, float c) { return fmaf(a, b, c); }
DEVICE float NegMulAdd(float a, float b, float c) { return fmaf(-a, b, c); }

DEVICE bool Lt(float a, float b) { return a < b; }
DEVICE bool Le(float a, float b) { return a <= b; }
DEVICE bool Gt(float a, float b) { return a > b; }
DEVICE bool Ge(float a, float b) { return a >= b; }
DEVICE bool Eq(float a, float b) { return a == b; }
DEVICE bool IsNaN(float a) { return a != a; }
DEVICE bool And(bool a, bool b) { return a && b; }
DEVICE bool Or(bool a, bool b) { return a || b; }
DEVICE float IfThenElse(bool condition, float a, float b) { return condition ? a : b; }
DEVICE float IfThenElseZero(bool condition, float a) { return condition ? a : 0; }
DEVICE float IfThenZeroElse(bool condition, float a) { return condition ? 0 : a; }

}  // namespace hn

DEVICE float all(float x) { return x; }
DEVICE float smaller(float a, float b) { return a < b ? a : b; }
DEVICE float larger(float a, float b) { return a > b ? a : b; }

struct Whole {
  DEVICE float load(const float* x) const { return *x; }
  DEVICE void store(float v, float* y) const { *y = v; }
};

}  // namespace fovea::cpu::one_number
