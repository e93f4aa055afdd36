#pragma once

// The logarithms of base/math.h, for the host and for kernels of a GPU, and what they have in
// common with its other functions.

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/portable.h"

namespace fovea::math::parts {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// An unrounded sum of two doubles, |low| <= ulp(high) / 2: about 106 bits (Dekker 1971).
struct Pair {
  double high, low;
};

// Both return a + b exactly: sum() for any two numbers (Knuth), ordered_sum() if |a| >= |b|
// (Dekker).
PORTABLE inline Pair sum(double a, double b) {
  const double s = a + b, part = s - a;
  return {s, (a - (s - part)) + (b - part)};
}
PORTABLE inline Pair ordered_sum(double a, double b) {
  const double s = a + b;
  return {s, b - (s - a)};
}

// Returns c0 + x (c1 + x (c2 + ...)) for the coefficients c0, c1, c2, ...
PORTABLE inline double polynomial(double, double last) { return last; }
template <class... Rest>
PORTABLE inline double polynomial(double x, double first, Rest... rest) {
  return std::fma(polynomial(x, rest...), x, first);
}

// ln 2 in two parts; k * kLn2High is exact for an integer |k| < 2^12.
constexpr double kLn2High = 0x1.62e42fefa3000p-1, kLn2Low = 0x1.3de6af278ece6p-42;

// x = 2^k m with m in [sqrt(1/2), sqrt(2)), for 0 < x < infinity.
struct Scaled {
  double k, m;
};
PORTABLE inline Scaled near_one(double x) {
  int64_t k = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    k = -54;
  }
  constexpr uint64_t kSquareRoot = 0x3fe6a09e667f3bcd;  // the bits of sqrt(1/2)
  const uint64_t bits = std::bit_cast<uint64_t>(x) - kSquareRoot;
  k += static_cast<int64_t>(bits) >> 52;
  return {static_cast<double>(k), std::bit_cast<double>((bits & 0xfffffffffffff) + kSquareRoot)};
}

PORTABLE inline double natural_log(double x) {
  if (x == 0) return -kInfinity;
  if (x < 0) return kNaN;
  if (!(x < kInfinity)) return x;
  // Like logarithm(), but only s is unrounded; this takes a fifth of the time.
  const auto [k, m] = near_one(x);
  const Pair below = sum(m, 1);
  const double inverse = 1 / below.high, s = (m - 1) * inverse;
  const double rest = std::fma(-s, below.high, m - 1) - s * below.low;
  const double z = s * s;
  const Pair y = ordered_sum(k * kLn2High, 2 * s);
  return y.high + (y.low + (k * kLn2Low + (2 * rest * inverse +
                                           s * z *
                                               polynomial(z, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9,
                                                          2.0 / 11, 2.0 / 13, 2.0 / 15, 2.0 / 17,
                                                          2.0 / 19, 2.0 / 21, 2.0 / 23))));
}

// Keeps no unrounded terms: the relative error before the final rounding is about 2^-50, and it
// takes half as long as the double version. Attention computes one logarithm per row.
PORTABLE inline float natural_log(float x) {
  if (!(x > 0 && x < std::numeric_limits<float>::infinity()))
    return static_cast<float>(natural_log(double{x}));
  const auto [k, m] = near_one(x);
  const double s = (m - 1) / (m + 1), z = s * s;
  const double y = s * z *
                   polynomial(z, 2.0 / 3, 2.0 / 5, 2.0 / 7, 2.0 / 9, 2.0 / 11, 2.0 / 13, 2.0 / 15,
                              2.0 / 17, 2.0 / 19);
  return static_cast<float>(k * (kLn2High + kLn2Low) + (2 * s + y));
}

}  // namespace fovea::math::parts
