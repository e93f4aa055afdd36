#include "embed/losses.h"

#include <cmath>

#include "embed/pooling.h"
#include "support/expect_error.h"
#include "support/gradient_check.h"

namespace fovea::infer {
namespace {

using Inputs = std::vector<Tensor>;

TEST(RankingLoss, IsTheCrossEntropyOfThePositive) {
  const Tensor a = tensor_of({1, 0, 0, 1}, {2, 2}), c = tensor_of({1, 0, 0, 1, 0.6f, 0.8f}, {3, 2});
  const double first = -std::log(std::exp(2) / (std::exp(2) + 1 + std::exp(1.2)));
  const double second = -std::log(std::exp(2) / (std::exp(2) + 1 + std::exp(1.6)));
  EXPECT_NEAR(to_floats(ranking_loss(a, c, 0.5f))[0], (first + second) / 2, 1e-6);
}

TEST(CosineLoss, IsTheMeanSquaredError) {
  const Tensor a = tensor_of({1, 0, 0, 1}, {2, 2}), b = tensor_of({0.6f, 0.8f, 0, 1}, {2, 2});
  EXPECT_NEAR(cosine_loss(a, b, {0.5f, -1}).data_as<float>()[0], (0.01 + 4) / 2, 1e-6);
}

TEST(FirstDimensions, HaveUnitLength) {
  const auto y = to_floats(first_dimensions(tensor_of({3, 4, 9, 0, 2, 1}, {2, 3}), 2));
  EXPECT_NEAR(y[0], 0.6, 1e-6);
  EXPECT_NEAR(y[1], 0.8, 1e-6);
  EXPECT_NEAR(y[3], 1, 1e-6);
}

TEST(EmbeddingLosses, HaveTheGradientsOfTheFormulas) {
  const Inputs inputs = {test::normal({3, 5}, 1), test::normal({4, 5}, 2)};
  test::check_gradients(inputs, [](const Inputs& x) {
    return ranking_loss(unit_length(x[0]), first_dimensions(x[1], 5), 0.3f);
  });
  test::check_gradients({inputs[0], test::normal({3, 5}, 3)}, [](const Inputs& x) {
    return cosine_loss(first_dimensions(x[0], 3), first_dimensions(x[1], 3), {1, 0.5f, -0.25f});
  });
  test::check_gradients({inputs[0]}, [](const Inputs& x) { return inner_product(x[0], x[0]); });
}

TEST(EmbeddingLosses, RefuseMismatchedShapes) {
  const Tensor a = zeros({2, 3}), b = zeros({1, 3}), c = zeros({2, 4});
  expect_error(ErrorKind::InvalidArgument, {"ranking_loss"}, [&] { ranking_loss(a, b, 1); });
  expect_error(ErrorKind::InvalidArgument, {"ranking_loss"}, [&] { ranking_loss(a, c, 1); });
  expect_error(ErrorKind::InvalidArgument, {"temperature"}, [&] { ranking_loss(a, a, 0); });
  expect_error(ErrorKind::InvalidArgument, {"cosine_loss"}, [&] { cosine_loss(a, a, {1}); });
  expect_error(ErrorKind::InvalidArgument, {"dimensions"}, [&] { first_dimensions(a, 4); });
}

}  // namespace
}  // namespace fovea::infer
