#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/ops.h"

namespace fovea {
namespace {

TEST(InverseRowLengths, AreThoseOfEachRow) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const Tensor y = inverse_row_lengths(tensor_of({3, 4, 0, 0, -6, 8, 1, 0}, {4, 2}, dtype));
    EXPECT_EQ(y.dtype(), dtype == DType::f64 ? DType::f64 : DType::f32);
    const std::vector<float> values = to_floats(y);
    const float expected[] = {0.2f, 0, 0.1f, 1};
    for (size_t i = 0; i < 4; ++i) EXPECT_FLOAT_EQ(values[i], expected[i]);
  }
}

TEST(InverseRowLengths, AddInDouble) {
  constexpr int64_t kWidth = 5003;
  const Tensor y = inverse_row_lengths(full({3, kWidth}, 0.1));
  const double length = std::sqrt(static_cast<double>(kWidth)) * static_cast<double>(0.1f);
  for (const float value : to_floats(y)) EXPECT_FLOAT_EQ(value, static_cast<float>(1 / length));
}

TEST(InverseRowLengths, AreFinite) {
  const Tensor y = inverse_row_lengths(tensor_of({1e-45f, 0}, {1, 2}));
  EXPECT_EQ(to_floats(y)[0], std::numeric_limits<float>::max());
}

}  // namespace
}  // namespace fovea
