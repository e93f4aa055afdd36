#pragma once

// The exponential function of base/math.h, for the host and for kernels of a GPU.

#include "base/log.h"

namespace fovea::math::parts {

PORTABLE inline Pair product(double a, double b) {
  const double p = a * b;
  return {p, std::fma(a, b, -p)};
}

PORTABLE inline double power_of_two(int64_t n) {  // -1022 <= n <= 1023
  return std::bit_cast<double>(static_cast<uint64_t>(n + 1023) << 52);
}

// e^x = 2^n (1 + y) for |x| < 2^10: x = n ln 2 + r with |r| <= ln 2 / 2, and y = e^r - 1 is
// computed by its Taylor series, in which r + r^2 / 2 is kept unrounded.
struct Exponential {
  int64_t n;
  Pair y;
};
PORTABLE inline Exponential exponential(Pair x) {
  constexpr double kPerLn2 = 0x1.71547652b82fep+0, kShift = 0x1.8p52;  // adding kShift rounds
  const double n = (x.high * kPerLn2 + kShift) - kShift;
  const double near = std::fma(-n, kLn2High, x.high), rest = n * kLn2Low;
  const double high = near - rest;
  const Pair r = sum(high, ((near - high) - rest) + x.low);
  Pair square = product(r.high, r.high);
  const double cubic = r.high * square.high *
                       polynomial(r.high, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040,
                                  1.0 / 40320, 1.0 / 362880, 1.0 / 3628800, 1.0 / 39916800,
                                  1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200);
  square = {square.high / 2, square.low / 2 + r.high * r.low};
  const Pair y = ordered_sum(r.high, square.high);
  return {static_cast<int64_t>(n), ordered_sum(y.high, y.low + (r.low + square.low + cubic))};
}

// Returns 2^n (1 + y), rounded once.
PORTABLE inline double scaled(const Exponential& e) {
  const Pair one = ordered_sum(1, e.y.high);
  const double high = one.high, low = one.low + e.y.low;
  if (e.n > 1023) return (high + low) * 2 * power_of_two(e.n - 1);
  if (e.n >= -1021 || (e.n == -1022 && high > 1)) return (high + low) * power_of_two(e.n);
  // A denormal result: adding 1 first rounds the sum at the result's last bit.
  const double scale = power_of_two(e.n + 1022);
  const Pair shifted = ordered_sum(1, high * scale);
  return ((shifted.high + (shifted.low + low * scale)) - 1) * power_of_two(-1022);
}

constexpr double kMostExp = 710, kLeastExp = -746;  // outside, e^x is infinity or 0

PORTABLE inline double natural_exp(double x) {
  if (x != x) return x;
  if (x > kMostExp) return kInfinity;
  if (x < kLeastExp) return 0;
  return scaled(exponential({x, 0}));
}

}  // namespace fovea::math::parts
