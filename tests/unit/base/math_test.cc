#include "base/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "base/hash.h"
#include "fovea/core/random.h"

namespace fovea {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLeast = std::numeric_limits<double>::denorm_min();
constexpr double kSpecial[] = {
    0.0,      -0.0,       1.0,    -1.0,      0.5,        -0.5,
    2.0,      -2.0,       3.0,    -3.0,      1e308,      -1e308,
    1e-300,   -1e-300,    1e20,   -1e20,     kLeast,     -kLeast,
    709.7,    -745.1,     709.8,  -745.2,    1e-310,     0x1p53 - 1,
    0x1p1023, -0x1p-1022, 0x1p52, kInfinity, -kInfinity, std::numeric_limits<double>::quiet_NaN(),
};

// Returns the distance of `found` from `wanted`, in units in the last place of `wanted`.
double error_of(double found, long double wanted) {
  const auto nearest = static_cast<double>(wanted);
  if (found == nearest || (std::isnan(found) && std::isnan(nearest))) {
    if (!std::isfinite(nearest)) return 0;
  } else if (!std::isfinite(nearest) || !std::isfinite(found)) {
    return kInfinity;
  }
  int exponent = 0;
  std::frexp(nearest, &exponent);
  const long double unit = std::ldexp(1.0L, std::max(exponent - 53, -1074));
  return static_cast<double>(std::abs(found - wanted) / unit);
}

// Random numbers: of any magnitude (random bits), uniform in an interval, or close to a number.
class Arguments {
 public:
  double of_any_size() {
    const uint64_t high = random_.word(), low = random_.word();
    return std::bit_cast<double>(high << 32 | low);
  }
  double between(double least, double most) {
    return least + (most - least) * random_.uniform_double();
  }
  double near(double centre) {
    const int exponent = -static_cast<int>(random_.word() % 60);
    return centre + std::ldexp(between(-1, 1), exponent);
  }

 private:
  Random random_{7, Stream::init};
};

using Function = double (*)(double);
using Reference = long double (*)(long double);

struct Elementary {
  const char* name;
  Function function;
  Reference reference;  // 64 bits of mantissa
  double bound;         // maximum error in units in the last place
  double least, most;   // the tested range

  friend void PrintTo(const Elementary& f, std::ostream* out) { *out << f.name; }
};

class MathTest : public testing::TestWithParam<Elementary> {
 protected:
  void expect_near(double x) const {
    const Elementary& f = GetParam();
    ASSERT_LE(error_of(f.function(x), f.reference(x)), f.bound)
        << f.name << "(" << std::hexfloat << x << ") = " << f.function(x);
  }
};

TEST_P(MathTest, IsAccurate) {
  Arguments arguments;
  const auto [name, function, reference, bound, least, most] = GetParam();
  for (int i = 0; i < 100'000; ++i) {
    for (const double x : {arguments.between(least, most), arguments.of_any_size(),
                           arguments.near(1), arguments.near(0)})
      expect_near(x);
    if (HasFatalFailure()) return;
  }
}

// Compares with the C library, which follows the standard. The signs, also of zeros, are compared.
TEST_P(MathTest, HasTheSpecialValuesOfTheStandard) {
  const Elementary& f = GetParam();
  for (const double x : kSpecial) {
    expect_near(x);
    const double y = f.function(x);
    EXPECT_TRUE(std::isnan(y) || std::signbit(y) == std::signbit(f.reference(x)))
        << f.name << "(" << x << ")";
  }
}

INSTANTIATE_TEST_SUITE_P(Functions, MathTest,
                         testing::Values(Elementary{"sin", math::sin, std::sin, 0.57, -100, 100},
                                         Elementary{"cos", math::cos, std::cos, 0.57, -1e7, 1e7},
                                         Elementary{"exp", math::exp, std::exp, 0.53, -746, 711},
                                         Elementary{"log", math::log, std::log, 0.57, 0, 4},
                                         Elementary{"log10", math::log10, std::log10, 0.51, 0, 20},
                                         Elementary{"tanh", math::tanh, std::tanh, 0.57, -23, 23}),
                         [](const auto& f) { return f.param.name; });

TEST(Math, RoundsLogarithmsOfFloats) {
  Arguments arguments;
  const auto expect_rounded = [](float x) {
    const long double wanted = std::log(static_cast<long double>(x));
    const auto nearest = static_cast<float>(wanted), found = math::log(x);
    if (found == nearest || (std::isnan(found) && std::isnan(nearest))) return;
    // If the exact result is almost halfway between two floats, either of them is accepted.
    const long double unit = std::abs(static_cast<long double>(found) - nearest);
    EXPECT_LE(std::abs(found - wanted), 0.500001L * unit) << std::hexfloat << x << " " << found;
  };
  for (const double x : kSpecial) expect_rounded(static_cast<float>(x));
  for (int i = 0; i < 100'000; ++i) {
    expect_rounded(std::bit_cast<float>(static_cast<uint32_t>(i) * 42949u));
    expect_rounded(static_cast<float>(arguments.between(0, 4)));
    expect_rounded(static_cast<float>(arguments.near(1)));
  }
}

// Near multiples of pi / 2, nearly all leading digits of the argument cancel in the range
// reduction.
TEST(Math, IsAccurateAtMultiplesOfAQuarterTurn) {
  for (int64_t n = 1; n < 100'000; ++n) {
    const double x = static_cast<double>(n) * 1.5707963267948966;
    ASSERT_LE(error_of(math::sin(x), std::sin(static_cast<long double>(x))), 0.57) << n;
    ASSERT_LE(error_of(math::cos(x), std::cos(static_cast<long double>(x))), 0.57) << n;
  }
  // The double closest to a multiple of pi / 2 (Muller et al., Handbook of Floating-Point
  // Arithmetic, 11.3).
  EXPECT_EQ(math::cos(0x1.6ac5b262ca1ffp+849), -4.68716592425462761112e-19);
}

TEST(Math, ComputesPowers) {
  Arguments arguments;
  for (int i = 0; i < 200'000; ++i) {
    const double near = arguments.near(1), any = std::abs(arguments.of_any_size());
    const double exponent = arguments.between(-2, 2);
    for (const auto& [x, y] : {std::pair{arguments.between(0, 20), arguments.between(-200, 200)},
                               {any, exponent},
                               {near, exponent * 0x1p40},
                               {10000.0, exponent}}) {
      const long double wanted = std::pow(static_cast<long double>(x), static_cast<long double>(y));
      ASSERT_LE(error_of(math::pow(x, y), wanted), 0.53)
          << std::hexfloat << "pow(" << x << ", " << y << ")";
    }
  }
  for (const double x : kSpecial) {
    for (const double y : kSpecial) {
      const double found = math::pow(x, y), wanted = std::pow(x, y);
      ASSERT_LE(error_of(found, std::pow(static_cast<long double>(x), y)), 0.53) << x << ", " << y;
      ASSERT_TRUE(std::isnan(wanted) || std::signbit(found) == std::signbit(wanted))
          << x << ", " << y;
    }
  }
  for (int n = 0; n <= 22; ++n)
    EXPECT_EQ(math::pow(10.0, static_cast<double>(n)), std::stod("1e" + std::to_string(n)));
}

// The results have the same bits with every compiler, C library and CPU. The constant was computed
// with g++ 12 and glibc 2.36.
TEST(Math, GivesTheSameBitsEverywhere) {
  Arguments arguments;
  Hasher hasher;
  const auto add = [&](double y) {
    if (std::isnan(y)) y = 0;  // the bits of a NaN have no meaning
    hasher.add({reinterpret_cast<const char*>(&y), sizeof y});
  };
  for (int i = 0; i < 20'000; ++i) {
    for (const double x :
         {arguments.of_any_size(), arguments.between(-20, 20), arguments.near(1)}) {
      const math::SineAndCosine turn = math::sine_and_cosine(x);
      for (const double y : {turn.sine, turn.cosine, math::exp(x), math::log(std::abs(x)),
                             math::log10(std::abs(x)), math::tanh(x), math::pow(std::abs(x), 0.7)})
        add(y);
    }
  }
  EXPECT_EQ(hash_text(hasher.hash()), "d9415a05c8af81c1");
}

}  // namespace
}  // namespace fovea
