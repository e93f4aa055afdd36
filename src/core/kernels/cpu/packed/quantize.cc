// Rounding of weights to int8 and int4; see quantize_group() in kernels/layout/packed.cc.

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "kernels/cpu/cpu.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/packed/quantize.cc"
#include "hwy/foreach_target.h"
// Must follow foreach_target.h.
#include "hwy/highway.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

HWY_INLINE float largest_magnitude_of(const float* x, int64_t size) {
  Vector one = all(0), other = all(0);
  for (int64_t i = 0; i < size; i += 2 * kLanes) {
    one = larger(one, hn::Abs(hn::LoadU(Floats(), x + i)));
    other = larger(other, hn::Abs(hn::LoadU(Floats(), x + i + kLanes)));
  }
  return hn::GetLane(hn::MaxOfLanes(Floats(), larger(one, other)));
}

// Rounds to the nearest integer, ties to even, for |x| < 2^22, and limits the result.
HWY_INLINE Vector nearest_within(Vector x, float least, float most) {
  constexpr float kNoFraction = 12582912.0f;
  const Vector whole = hn::Sub(hn::Add(x, all(kNoFraction)), all(kNoFraction));
  return smaller(larger(whole, all(least)), all(most));
}

// Writes a group of numbers rounded to multiples of `scale`; all are 0 if the scale is 0 or not
// finite.
HWY_INLINE void round_to(const float* x, int64_t size, float scale, float least, float most,
                         int offset, uint8_t* numbers) {
  const hn::Rebind<uint8_t, Floats> bytes;
  const hn::RebindToSigned<Floats> wholes;
  const bool zero = scale == 0 || !std::isfinite(scale);
  if (zero) return std::fill_n(numbers, size, static_cast<uint8_t>(offset)), void();
  const Vector inverse = all(1 / scale);
  for (int64_t i = 0; i < size; i += kLanes) {
    const Vector near = nearest_within(hn::Mul(hn::LoadU(Floats(), x + i), inverse), least, most);
    const auto whole = hn::Add(hn::ConvertTo(wholes, near), hn::Set(wholes, offset));
    hn::StoreU(hn::DemoteTo(bytes, whole), bytes, numbers + i);
  }
}

void bytes_on(const float* x, int64_t groups, int64_t size, uint8_t* numbers, uint16_t* scales,
              int64_t stride) {
  for (int64_t g = 0; g < groups; ++g, x += size, numbers += size) {
    const uint16_t scale = ::fovea::narrow_to_half(largest_magnitude_of(x, size) / 127);
    scales[g * stride] = scale;
    round_to(x, size, ::fovea::widen_half(scale), -127, 127, 128, numbers);
  }
}

// The divisors of the number of largest magnitude that give the candidates of a scale; the last one
// fills the vector.
alignas(64) constexpr float kDivisors[16] = {-8.0f,  -8.5f, -7.75f, -7.5f, -7.25f, -7.0f,
                                             -6.75f, -6.5f, -6.0f,  7.5f,  7.0f,   6.75f,
                                             6.5f,   6.25f, 6.0f,   6.0f};

// Returns the lanes of a mask as bits.
HWY_INLINE uint64_t bits_of(hn::Mask<Floats> mask) {
  uint8_t bytes[8] = {};
  hn::StoreMaskBits(Floats(), mask, bytes);
  return bytes[0] | static_cast<uint64_t>(bytes[1]) << 8;
}

// Returns the candidate with the least error, the first one of several. Candidates that are 0 do
// not count, nor infinite ones, whose error is NaN. If the first candidate is one of these, so is
// the result.
template <int kVectors>
HWY_INLINE float first_least(const Vector* scale, Vector* error) {
  const Vector none = all(std::numeric_limits<float>::infinity());
  Vector least = none;
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    const auto excluded = hn::Or(hn::IsNaN(error[v]), hn::Eq(scale[v], all(0)));
    error[v] = hn::IfThenElse(excluded, none, error[v]);
    least = smaller(least, error[v]);
  }
  least = hn::MinOfLanes(Floats(), least);
  const float first = hn::GetLane(scale[0]);
  if (first == 0 || !std::isfinite(first)) return first;
  alignas(64) float scales[16];
  uint64_t found = 0;  // a bit for each candidate
#pragma GCC unroll 2
  for (int v = 0; v < kVectors; ++v) {
    hn::Store(scale[v], Floats(), scales + v * kLanes);
    found |= bits_of(hn::Eq(error[v], least)) << (v * kLanes);
  }
  return scales[std::countr_zero(found | 0x8000)];
}

// Returns the first number of largest magnitude, with its sign.
HWY_INLINE float extreme_of(const float* x, int64_t size) {
  Vector most = hn::LoadU(Floats(), x), least = most;
  for (int64_t i = kLanes; i < size; i += kLanes) {
    const Vector v = hn::LoadU(Floats(), x + i);
    most = larger(most, v);
    least = smaller(least, v);
  }
  most = hn::MaxOfLanes(Floats(), most);
  least = hn::MinOfLanes(Floats(), least);
  const float high = hn::GetLane(most), low = hn::GetLane(least);
  if (high == 0 && low == 0) return 0;
  if (high == -low)
    return *std::find_if(x, x + size - 1, [&](float v) { return v == high || v == low; });
  return hn::GetLane(hn::IfThenElse(hn::Gt(most, hn::Neg(least)), most, least));
}

// Sets `scales`, for each of kGroups groups, to the first of the scales extreme / kDivisors,
// rounded to f16, with the least sum of squared errors. A lane computes the errors of a candidate,
// in the order of x. The product of an integer and a scale is exact. Several groups hide latencies.
template <int kGroups>
HWY_INLINE void best_scales(const float* x, int64_t size, float* scales) {
  constexpr int kVectors = 16 / kLanes;
  const hn::Rebind<hwy::float16_t, Floats> halves;
  Vector scale[kGroups][kVectors], inverse[kGroups][kVectors], error[kGroups][kVectors];
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) {
    const Vector extreme = all(extreme_of(x + g * size, size));
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) {
      const Vector exact = hn::Div(extreme, hn::Load(Floats(), kDivisors + v * kLanes));
      scale[g][v] = hn::PromoteTo(Floats(), hn::DemoteTo(halves, exact));
      inverse[g][v] = hn::Div(all(1), scale[g][v]);
      error[g][v] = all(0);
    }
  }
  for (int64_t i = 0; i < size; ++i) {
#pragma GCC unroll 4
    for (int g = 0; g < kGroups; ++g) {
      const Vector value = all(x[g * size + i]);
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) {
        const Vector near = nearest_within(hn::Mul(value, inverse[g][v]), -8, 7);
        const Vector difference = hn::NegMulAdd(near, scale[g][v], value);
        error[g][v] = hn::Add(error[g][v], hn::Mul(difference, difference));
      }
    }
  }
#pragma GCC unroll 4
  for (int g = 0; g < kGroups; ++g) scales[g] = first_least<kVectors>(scale[g], error[g]);
}

template <int kGroups>
HWY_INLINE void groups_to_nibbles(const float* x, int64_t size, uint8_t* numbers, uint16_t* scales,
                                  int64_t stride) {
  float best[kGroups];
  best_scales<kGroups>(x, size, best);
  for (int g = 0; g < kGroups; ++g) {
    scales[g * stride] = ::fovea::narrow_to_half(best[g]);
    round_to(x + g * size, size, best[g], -8, 7, 8, numbers + g * size);
  }
}

void nibbles_on(const float* x, int64_t groups, int64_t size, uint8_t* numbers, uint16_t* scales,
                int64_t stride) {
  constexpr int kTogether = kLanes == 16 ? 4 : 2;
  int64_t g = 0;
  for (; g + kTogether <= groups; g += kTogether) {
    groups_to_nibbles<kTogether>(x + g * size, size, numbers + g * size, scales + g * stride,
                                 stride);
  }
  for (; g < groups; ++g)
    groups_to_nibbles<1>(x + g * size, size, numbers + g * size, scales + g * stride, stride);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(bytes_on);
HWY_EXPORT(nibbles_on);

void quantize_groups(WeightFormat format, const float* x, int64_t groups, int64_t size,
                     uint8_t* numbers, uint16_t* scales, int64_t stride) {
  if (format == WeightFormat::int8)
    HWY_DYNAMIC_DISPATCH(bytes_on)(x, groups, size, numbers, scales, stride);
  else
    HWY_DYNAMIC_DISPATCH(nibbles_on)(x, groups, size, numbers, scales, stride);
}

}  // namespace fovea::cpu
#endif
