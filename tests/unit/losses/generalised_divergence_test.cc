#include "losses/generalised_divergence.h"

#include <cmath>

#include "base/json.h"
#include "ops/units.h"
#include "support/expect_error.h"
#include "support/gradient_check.h"
#include "support/top_probabilities.h"

namespace fovea::train {
namespace {

Tensor tensor_in(const nlohmann::json& rows, DType type) {
  std::vector<float> all;
  for (const auto& row : rows)
    for (const auto& number : row) all.push_back(number.get<float>());
  return tensor_of(all, {std::ssize(rows), std::ssize(rows[0])}, type);
}

// TRL's mean over the rows with labels (tools/goldens/make_divergences.py).
TEST(GeneralisedDivergence, IsThatOfTrl) {
  const nlohmann::json golden = read_json("tests/goldens/divergences.json");
  const Tensor student = tensor_in(golden["student"], DType::f32),
               teacher = tensor_in(golden["teacher"], DType::f32);
  const int64_t R = student.dim(0), V = student.dim(1);
  double counted = 0;
  for (const auto& label : golden["labels"]) counted += label.get<int>() >= 0;
  for (const auto& expected : golden["cases"]) {
    SCOPED_TRACE(fmt::format("beta {}, temperature {}", expected["beta"].get<double>(),
                             expected["temperature"].get<double>()));
    const DivergenceOptions options{expected["beta"], expected["temperature"]};
    const TopProbabilities p =
        test::for_dtype(test::top_probabilities(teacher, V, options.temperature), DType::f32);
    for (int64_t r = 0; r < R; ++r)
      if (golden["labels"][static_cast<size_t>(r)].get<int>() < 0) test::ignore_row(p, r);
    Tensor logits = convert(student, DType::f32);
    logits.want_gradient();
    const Tensor sum = generalised_divergence(logits, p, options);
    EXPECT_NEAR(number_of(sum) / counted, expected["value"].get<double>(), 1e-5);
    backward(sum);
    const Tensor gradient = tensor_in(expected["gradient"], DType::f32);
    for (int64_t i = 0; i < R * V; ++i)
      EXPECT_NEAR(test::at(logits.gradient(), i) / counted, test::at(gradient, i), 1e-5) << i;
  }
}

// Also with the classes that the teacher does not list as one.
TEST(GeneralisedDivergence, HasTheGradientOfFiniteDifferences) {
  constexpr int64_t kRows = 5, kClasses = 9;
  const Tensor teacher = convert(test::normal({kRows, kClasses}, 3, 2), DType::f32);
  for (const int64_t k : {1, 4, 9})
    for (const double beta : {0.0, 0.3, 1.0}) {
      SCOPED_TRACE(fmt::format("{} classes, beta {}", k, beta));
      const TopProbabilities p = test::top_probabilities(teacher, k, 1.5);
      test::ignore_row(p, 2);
      test::check_gradients({test::normal({kRows, kClasses}, 4, 2)}, [&](const auto& x) {
        return generalised_divergence(x[0], p, {beta, 1.5});
      });
    }
}

TEST(GeneralisedDivergence, IsZeroForEqualDistributionsAndFiniteForFarOnes) {
  const Tensor same = tensor_of({1, -2, 0.5f, 3}, {1, 4});
  const Tensor far = tensor_of({-300, 300, -300, -300, 300, -300, -300, -300}, {2, 4});
  const TopProbabilities excluded = test::for_dtype(test::top_probabilities(far, 4, 1), DType::f32);
  const Tensor opposite = tensor_of({300, -300, -300, -300, -300, 300, -300, -300}, {2, 4});
  for (const double beta : {0.0, 0.5, 1.0}) {
    const TopProbabilities p = test::for_dtype(test::top_probabilities(same, 4, 1), DType::f32);
    EXPECT_NEAR(number_of(generalised_divergence(same, p, {beta, 1})), 0, 1e-6);
    Tensor logits = convert(opposite, DType::f32);
    logits.want_gradient();
    const Tensor sum = generalised_divergence(logits, excluded, {beta, 1});
    EXPECT_GT(number_of(sum), 1);
    backward(sum);
    for (int64_t i = 0; i < 8; ++i) EXPECT_TRUE(std::isfinite(test::at(logits.gradient(), i)));
  }
}

TEST(GeneralisedDivergence, AddsUnitsByTheirTree) {
  const Tensor logits = convert(test::normal({6, 5}, 8), DType::f32);
  const TopProbabilities p = test::for_dtype(
      test::top_probabilities(convert(test::normal({6, 5}, 9), DType::f32), 3, 1), DType::f32);
  const auto part = [&](int64_t begin, int64_t end) {
    return number_of(generalised_divergence(
        logits.rows(begin, end), {p.classes.rows(begin, end), p.log_p.rows(begin, end)}, {0.5, 1}));
  };
  const UnitScope units({3, nullptr});
  const double whole = number_of(generalised_divergence(logits, p, {0.5, 1}));
  const UnitScope one({1, nullptr});
  EXPECT_EQ(whole, (part(0, 2) + part(2, 4)) + part(4, 6));
  expect_error(ErrorKind::InvalidArgument, {"generalised_divergence: logits are", "expected"},
               [&] { generalised_divergence(logits.rows(0, 2), p, {}); });
}

}  // namespace
}  // namespace fovea::train
