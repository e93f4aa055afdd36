#include "base/dtype.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace fovea {
namespace {

TEST(DType, HasSizesAndNames) {
  EXPECT_EQ(size_of(DType::bf16), 2u);
  EXPECT_EQ(size_of(DType::f16), 2u);
  EXPECT_EQ(size_of(DType::f32), 4u);
  EXPECT_EQ(size_of(DType::i32), 4u);
  EXPECT_EQ(size_of(DType::f64), 8u);
  EXPECT_EQ(size_of(DType::i64), 8u);
  EXPECT_EQ(name_of(DType::f32), "fp32");
  EXPECT_EQ(name_of(DType::bf16), "bf16");
}

TEST(Bf16, EveryValueSurvivesWideningAndNarrowing) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const bf16 x{static_cast<uint16_t>(bits)};
    const float wide = widen(x);
    if (std::isnan(wide)) {
      EXPECT_TRUE(std::isnan(widen(narrow(wide))));
    } else {
      EXPECT_EQ(narrow(wide).bits, x.bits);
    }
  }
}

TEST(Bf16, RoundsToTheNearestAndTiesToEven) {
  EXPECT_EQ(widen(narrow(1 + 0x1p-9f)), 1.0f);  // below half an ulp (2^-8)
  EXPECT_EQ(widen(narrow(1 + 0x1p-8f)), 1.0f);  // a tie is rounded to even: 1
  EXPECT_EQ(widen(narrow(1 + 0x1p-8f + 0x1p-20f)), 1 + 0x1p-7f);
  EXPECT_EQ(widen(narrow(1 + 0x1p-7f + 0x1p-8f)),
            1 + 0x1p-6f);  // a tie is rounded to even: 1 + 2^-6
  EXPECT_EQ(widen(narrow(-1 - 0x1p-8f)), -1.0f);
}

TEST(Bf16, KeepsZeroesInfinitiesAndNaN) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(std::signbit(widen(narrow(-0.0f))));
  EXPECT_EQ(widen(narrow(infinity)), infinity);
  EXPECT_EQ(widen(narrow(-infinity)), -infinity);
  EXPECT_EQ(widen(narrow(std::numeric_limits<float>::max())),
            infinity);  // closer to 2^128 than to the largest bf16
  // A NaN with a payload only in the lower half must not become infinity.
  EXPECT_TRUE(std::isnan(widen(narrow(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace fovea
