#include "ops/largest_products.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "fovea/core/machine.h"
#include "ops/ops.h"
#include "support/expect_error.h"
#include "tensor/tape.h"
#include "unit/ops/cases.h"

namespace fovea {
namespace {

using Counts = std::vector<int64_t>;

// The definition, in double.
std::vector<double> by_definition(const Tensor& x, const Tensor& z, const Counts& counts) {
  const int64_t R = x.dim(0), C = x.dim(1);
  std::vector<double> y;
  int64_t first = 0;
  for (const int64_t count : counts) {
    for (int64_t r = 0; r < R; ++r) {
      double largest = count > 0 ? -std::numeric_limits<double>::infinity() : 0;
      for (int64_t t = first; t < first + count; ++t) {
        double product = 0;
        for (int64_t c = 0; c < C; ++c) product += test::at(x, r * C + c) * test::at(z, t * C + c);
        largest = std::max(largest, product);
      }
      y.push_back(largest);
    }
    first += count;
  }
  return y;
}

TEST(LargestProducts, EqualTheirDefinition) {
  const Counts counts = {3, 0, 1, 7};
  const Tensor x = test::rounded({131, 5}, 1), z = test::rounded({11, 5}, 2);
  const std::vector<double> expected = by_definition(x, z, counts);
  for (const DType dtype : {DType::f64, DType::f32}) {
    const std::vector<float> found =
        to_floats(largest_products(convert(x, dtype), convert(z, dtype), counts));
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-5) << i;
  }
}

// With so many rows of x, a block holds a few tokens only, and texts extend over several blocks.
TEST(LargestProducts, AreTheSameInBlocks) {
  const int64_t R = kLogitsOfBlock / 3;
  const Tensor x = full({R, 1}, 2), z = tensor_of({1, -3, 5, 4, -2, 0.5f, -1}, {7, 1});
  const Tensor y = largest_products(x, z, {5, 2});
  EXPECT_EQ(to_floats(y)[0], 10);
  EXPECT_EQ(to_floats(y)[static_cast<size_t>(2 * R - 1)], 1);
}

TEST(LargestProducts, PassGradientsThroughTheFirstLargestToken) {
  Tensor x = tensor_of({1, 2}, {2, 1}), z = tensor_of({3, 3, 1}, {3, 1});
  x.want_gradient();
  z.want_gradient();
  backward(sum(largest_products(x, z, {3})));
  EXPECT_EQ(to_floats(x.gradient()), (std::vector<float>{3, 3}));
  EXPECT_EQ(to_floats(z.gradient()), (std::vector<float>{3, 0, 0}));
}

TEST(LargestProducts, KeepNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = largest_products(tensor_of({1}, {1, 1}), tensor_of({2, nan, 3}, {3, 1}), {3});
  EXPECT_TRUE(std::isnan(to_floats(y)[0]));
}

TEST(LargestProducts, HaveTheSameBitsOnAnyNumberOfThreads) {
  const int before = thread_count();
  std::vector<std::vector<float>> all;
  for (const int threads : {1, 2, 3}) {
    set_threads(threads);
    Tensor x = convert(test::rounded({9001, 7}, 1), DType::f32),
           z = convert(test::rounded({29, 7}, 2), DType::f32);
    x.want_gradient();
    z.want_gradient();
    const Tensor y = largest_products(x, z, {11, 1, 17});
    backward(test::weighted_sum(y));
    std::vector<float> found = to_floats(y);
    for (const Tensor& gradient : {x.gradient(), z.gradient()})
      for (const float each : to_floats(gradient)) found.push_back(each);
    all.push_back(std::move(found));
  }
  set_threads(before);
  EXPECT_EQ(all[1], all[0]);
  EXPECT_EQ(all[2], all[0]);
}

TEST(LargestProducts, RefuseWrongShapes) {
  const auto refused = [](const Tensor& x, const Tensor& z, const Counts& counts,
                          std::initializer_list<std::string> parts) {
    expect_error(ErrorKind::InvalidArgument, parts, [&] { largest_products(x, z, counts); });
  };
  refused(zeros({2, 3}), zeros({4, 2}), {4}, {"largest_products", "[2, 3]", "[4, 2]", "[R, C]"});
  refused(zeros({2, 3}), zeros({4, 3}), {2, 1}, {"counts of 2 texts", "their sum to be 4"});
  refused(zeros({2, 3}), zeros({4, 3}), {5, -1}, {"counts of 2 texts"});
}

}  // namespace
}  // namespace fovea
