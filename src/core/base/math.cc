#include "base/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "base/exp.h"
#include "base/log.h"

namespace fovea::math {
namespace {

using namespace parts;

Pair operator+(Pair a, Pair b) {
  const Pair s = sum(a.high, b.high);
  return ordered_sum(s.high, s.low + (a.low + b.low));
}
Pair operator*(Pair a, Pair b) {
  const Pair p = product(a.high, b.high);
  return ordered_sum(p.high, p.low + (a.high * b.low + a.low * b.high));
}
Pair operator/(Pair a, Pair b) {
  const double q = a.high / b.high;
  const double rest = std::fma(-q, b.high, a.high) + (a.low - q * b.low);
  return ordered_sum(q, rest / b.high);
}

// Returns ln x = k ln 2 + 2 artanh s, where s = (m - 1) / (m + 1), with a relative error of about
// 2^-70: s and the first terms of the series are unrounded.
Pair logarithm(double x) {
  const auto [k, m] = near_one(x);
  const Pair s = Pair{m - 1, 0} / sum(m, 1);
  const Pair z = s * s;
  constexpr Pair kThird{0x1.5555555555555p-2, 0x1.5555555555555p-56},
      kFifth{0x1.999999999999ap-3, -0x1.999999999999ap-57};
  Pair y = kFifth +
           product(z.high, polynomial(z.high, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15,
                                      1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27));
  y = kThird + z * y;
  y = s + s * (z * y);
  y = {2 * y.high, 2 * y.low};
  return Pair{k * kLn2High, 0} + (product(k, kLn2Low) + y);
}

// The first 1,280 binary digits of 2 / pi, after 64 zeros.
constexpr uint64_t kTwoOverPi[] = {0,
                                   0xa2f9836e4e441529,
                                   0xfc2757d1f534ddc0,
                                   0xdb6295993c439041,
                                   0xfe5163abdebbc561,
                                   0xb7246e3a424dd2e0,
                                   0x06492eea09d1921c,
                                   0xfe1deb1cb129a73e,
                                   0xe88235f52ebb4484,
                                   0xe99c7026b45f7e41,
                                   0x3991d639835339f4,
                                   0x9c845f8bbdf9283b,
                                   0x1ff897ffde05980f,
                                   0xef2f118b5a0a6d1f,
                                   0x6d367ecf27cb09b7,
                                   0x4f463f669e5fea2d,
                                   0x7527bac7ebe5f17b,
                                   0x3d0739f78a5292ea,
                                   0x6bfb5fb11f8d5d08,
                                   0x56033046fc7b6bab,
                                   0xf0cfbc209af4361d};

using Wide = unsigned __int128;

// x = (4 i + quadrant) pi / 2 + rest for some integer i, with |rest| <= pi / 4.
struct Turned {
  uint64_t quadrant;
  Pair rest;
};

// Reduces x > pi / 4 (Payne and Hanek 1983): multiplies x = m 2^e by the 192 relevant bits of 2 /
// pi; the bits before them only add whole turns. The product is the quadrant (2 bits) and its
// fraction.
Turned reduced(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t m = (bits & 0xfffffffffffff) | 0x10000000000000;
  const uint64_t first = (bits >> 52) - 1075 + 62;  // e - 2 bits after the zeros
  const auto digits = [word = first / 64, shift = first % 64](uint64_t i) {
    return kTwoOverPi[word + i] << shift | kTwoOverPi[word + i + 1] >> 1 >> (63 - shift);
  };
  const Wide low = Wide{m} * digits(2);
  const Wide middle = Wide{m} * digits(1) + (low >> 64);
  const uint64_t high = m * digits(0) + static_cast<uint64_t>(middle >> 64);
  Wide fraction = Wide{high} << 66 | Wide{static_cast<uint64_t>(middle)} << 2 |
                  static_cast<uint64_t>(low) >> 62;
  const bool above = fraction >> 127 != 0;  // closer to the next quadrant
  if (above) fraction = -fraction;
  // The fraction is never 0: no double is that close to a multiple of pi / 2.
  const auto top = static_cast<uint64_t>(fraction >> 64);
  const int zeros =
      top != 0 ? std::countl_zero(top) : 64 + std::countl_zero(static_cast<uint64_t>(fraction));
  fraction <<= zeros;
  const double sign = above ? -power_of_two(-zeros) : power_of_two(-zeros);
  const Pair part{static_cast<double>(static_cast<uint64_t>(fraction >> 75)) * 0x1p-53 * sign,
                  static_cast<double>(static_cast<uint64_t>(fraction >> 22) & 0x1fffffffffffff) *
                      0x1p-106 * sign};
  constexpr Pair kHalfPi{0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
  return {(high >> 62) + (above ? 1 : 0), ordered_sum(part.high, part.low) * kHalfPi};
}

// Returns the sine for |x| <= pi / 4 by its Taylor series, with the first terms unrounded.
double sine_near_zero(Pair x) {
  constexpr Pair kSixth{-0x1.5555555555555p-3, -0x1.5555555555555p-57};
  const Pair z = product(x.high, x.high) + Pair{2 * x.high * x.low, 0};
  const Pair y = x * (z * kSixth);
  const double rest =
      x.high * z.high * z.high *
      polynomial(z.high, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800,
                 -1.0 / 1307674368000, 1.0 / 355687428096000, -1.0 / 121645100408832000);
  const Pair all = ordered_sum(x.high, y.high);
  return all.high + (all.low + (x.low + y.low + rest));
}

double cosine_near_zero(Pair x) {
  const Pair z = product(x.high, x.high) + Pair{2 * x.high * x.low, 0};
  const double rest = z.high * z.high *
                      polynomial(z.high, 1.0 / 24, -1.0 / 720, 1.0 / 40320, -1.0 / 3628800,
                                 1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000,
                                 -1.0 / 6402373705728000, 1.0 / 2432902008176640000);
  const Pair all = ordered_sum(1, -z.high / 2);
  return all.high + (all.low + (rest - z.low / 2));
}

}  // namespace

SineAndCosine sine_and_cosine(double x) {
  const double size = std::abs(x);
  if (!(size < kInfinity)) return {kNaN, kNaN};
  if (size < 0x1p-27) return {x, 1};
  constexpr double kQuarterPi = 0x1.921fb54442d18p-1;
  if (size <= kQuarterPi) return {sine_near_zero({x, 0}), cosine_near_zero({x, 0})};
  const Turned t = reduced(size);
  const double sine = sine_near_zero(t.rest), cosine = cosine_near_zero(t.rest);
  const bool odd = (t.quadrant & 1) != 0;
  const bool sine_falls = ((t.quadrant & 2) != 0) != (x < 0);
  const bool cosine_falls = ((t.quadrant + 1) & 2) != 0;
  const double first = odd ? cosine : sine, second = odd ? sine : cosine;
  return {sine_falls ? -first : first, cosine_falls ? -second : second};
}

double sin(double x) { return sine_and_cosine(x).sine; }
double cos(double x) { return sine_and_cosine(x).cosine; }

double exp(double x) { return natural_exp(x); }
double log(double x) { return natural_log(x); }
float log(float x) { return natural_log(x); }

double log10(double x) {
  if (!(x > 0 && x < kInfinity)) return log(x);
  constexpr Pair kPerLn10{0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57};
  const Pair y = logarithm(x) * kPerLn10;
  return y.high + y.low;
}

// Treats special arguments as Annex F of the C standard specifies.
double pow(double x, double y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return x + y;
  const double size = std::abs(x);
  const bool whole = std::trunc(y) == y, odd = whole && std::abs(std::fmod(y, 2)) == 1;
  const double sign = std::signbit(x) && odd ? -1.0 : 1.0;
  if (std::isinf(y)) return size == 1 ? 1 : (size > 1) == (y > 0) ? kInfinity : 0;
  if (size == 0 || std::isinf(size)) return (size == 0) == (y > 0) ? sign * 0.0 : sign * kInfinity;
  if (x < 0 && !whole) return kNaN;
  if (std::abs(y) < 0x1p-65) return 1;
  const Pair log = logarithm(size);
  const double high = log.high * y;
  if (high > kMostExp) return sign * kInfinity;
  if (high < kLeastExp) return sign * 0.0;
  return sign * scaled(exponential(Pair{y, 0} * log));
}

// Returns (e^(2|x|) - 1) / (e^(2|x|) + 1) with the sign of x.
double tanh(double x) {
  const double size = std::abs(x);
  if (!(size < 22)) return std::isnan(x) ? x : std::copysign(1.0, x);
  if (size < 0x1p-28) return x;
  const Exponential e = exponential({2 * size, 0});
  const double scale = power_of_two(e.n);
  const Pair grown{e.y.high * scale, e.y.low * scale};
  const Pair t = (sum(scale, -1) + grown) / (sum(scale, 1) + grown);
  return std::copysign(t.high + t.low, x);
}

}  // namespace fovea::math
