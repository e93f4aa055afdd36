#include "ops/ternary.h"

#include <gtest/gtest.h>

#include "base/threads.h"
#include "tensor/tape.h"
#include "unit/ops/cases.h"

namespace fovea {
namespace {

void expect_rounded(const Tensor& found, const std::vector<float>& expected) {
  const std::vector<float> values = to_floats(found);
  ASSERT_EQ(values.size(), expected.size());
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6f) << i;
}

const Tensor kMatrix = tensor_of({0.5f, -0.2f, 1.5f, -3, 0.05f, 0.9f, -0.7f, 0.4f}, {2, 4});

// The results are those of WeightQuant and ActQuant of transformers.
TEST(RoundTernary, MatchesTransformers) {
  constexpr float kMean = 0.90625f;
  expect_rounded(round_ternary(kMatrix), {kMean, 0, kMean, -kMean, 0, kMean, -kMean, 0});
  expect_rounded(round_ternary(zeros({2, 3})), {0, 0, 0, 0, 0, 0});
}

TEST(RoundRows, MatchesTransformers) {
  expect_rounded(round_rows(kMatrix.rows(0, 1)), {0.4960630f, -0.1889764f, 1.5118109f, -3});
  const Tensor small = tensor_of({1e-7f, 0, -2e-6f, 0}, {1, 4});  // divided by 1e-5
  expect_rounded(scale(round_rows(small), 1e5f), {0.0078740f, 0, -0.1968504f, 0});
  EXPECT_EQ(round_rows(zeros({0, 3})).shape(), (Shape{0, 3}));
}

TEST(RoundRows, DoesNotDependOnOtherRowsOrThreads) {
  const Tensor x = convert(test::normal({67, 131}, 1), DType::f32);
  const std::vector<float> all = to_floats(round_rows(x));
  const int threads = thread_count();
  set_threads(3);
  EXPECT_EQ(to_floats(round_rows(x)), all);
  set_threads(threads);
  const std::vector<float> row = to_floats(round_rows(x.rows(5, 6)));
  EXPECT_TRUE(std::equal(row.begin(), row.end(), all.begin() + 5 * 131));
}

TEST(Ternary, PassesTheGradientThrough) {
  Tensor x = copy(kMatrix).want_gradient(), w = copy(kMatrix).want_gradient();
  const Tensor dy = tensor_of({1, 2, 3, 4, 5, 6, 7, 8}, {2, 4});
  backward(test::weighted_sum(multiply(add(round_rows(x), round_ternary(w)), dy)));
  EXPECT_EQ(to_floats(x.gradient()), to_floats(w.gradient()));
  Tensor plain = copy(kMatrix).want_gradient();
  backward(test::weighted_sum(multiply(plain, dy)));
  EXPECT_EQ(to_floats(x.gradient()), to_floats(plain.gradient()));
}

TEST(Ternary, KeepsTheDtype) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64}) {
    const Tensor x = convert(kMatrix, dtype);
    EXPECT_EQ(round_rows(x).dtype(), dtype);
    EXPECT_EQ(round_ternary(x).dtype(), dtype);
  }
}

}  // namespace
}  // namespace fovea
