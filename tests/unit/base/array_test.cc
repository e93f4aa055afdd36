#include "fovea/core/array.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea {
namespace {

TEST(ArrayView, CountsLeadingAxesAsRows) {
  const float x[] = {1, 2, 3, 4, 5, 6, 7, 8};
  const ArrayView view{x, {2, 2, 2}};
  EXPECT_EQ(view.size(), 8);
  EXPECT_EQ(view.elements<float>().data(), x);
  EXPECT_EQ(view.row<float>(3)[0], 7);
  EXPECT_EQ(view.row<float>(3).size(), 2u);
  expect_error(ErrorKind::InvalidArgument, {"row 4 of 4"}, [&] { view.row<float>(4); });
  expect_error(ErrorKind::InvalidArgument, {"row -1"}, [&] { view.row<float>(-1); });
}

TEST(ArrayView, RefusesOtherTypes) {
  const int8_t x[] = {-1, 1};
  const ArrayView view{x, {1, 2}, DType::i8};
  EXPECT_EQ(view.row<int8_t>(0)[0], -1);
  expect_error(ErrorKind::InvalidArgument, {"int8", "fp32"}, [&] { view.elements<float>(); });
}

TEST(ArrayView, OfNoElementsHasNoRows) {
  EXPECT_EQ(ArrayView().size(), 0);
  const ArrayView none{nullptr, {0, 3}};
  EXPECT_TRUE(none.elements<float>().empty());
  expect_error(ErrorKind::InvalidArgument, {"row 0 of 0"}, [&] { none.row<float>(0); });
}

}  // namespace
}  // namespace fovea
