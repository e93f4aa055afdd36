#include "losses/embedding_losses.h"

#include <cmath>

#include "ops/ops.h"
#include "support/expect_error.h"
#include "support/gradient_check.h"

namespace fovea::train {
namespace {

using Inputs = std::vector<Tensor>;

constexpr int64_t kExamples = 3, kNegatives = 2, kWidth = 5;  // an odd width

Inputs anchors_and_candidates() {
  return {test::normal({kExamples, kWidth}, 1),
          test::normal({kExamples * (1 + kNegatives), kWidth}, 2)};
}
ExampleVectors vectors_of(const Inputs& x) { return {x[0], x[1]}; }

// The dot product of row i of a and row j of b.
double dot(const Tensor& a, int64_t i, const Tensor& b, int64_t j) {
  double sum = 0;
  for (int64_t c = 0; c < kWidth; ++c)
    sum += test::at(a, i * kWidth + c) * test::at(b, j * kWidth + c);
  return sum;
}

double value_of(const Tensor& x) { return test::at(x, 0); }

TEST(ExampleVectors, FindTheCandidatesOfAnAnchor) {
  const Inputs inputs = anchors_and_candidates();
  const ExampleVectors x = vectors_of(inputs);
  EXPECT_EQ(x.negatives(), kNegatives);
  const Tensor products = x.own_products();
  for (int64_t i = 0; i < kExamples; ++i)
    for (int64_t j = 0; j <= kNegatives; ++j)
      EXPECT_NEAR(test::at(products, i * (1 + kNegatives) + j),
                  dot(inputs[0], i, inputs[1], j * kExamples + i), 1e-12);
}

TEST(PairAngles, AreThoseOfComplexNumbers) {
  // z = (1 + 3i, 2 + 0i), w = (2 - i, 1 + i): the last imaginary part is missing.
  const Tensor a = tensor_of({1, 2, 3}, {1, 3}, DType::f64);
  const Tensor b = tensor_of({2, 1, -1}, {1, 3}, DType::f64);
  const double real = (1 * 2 + 3 * -1) + 2 * 1, imaginary = (3 * 2 - 1 * -1) + 0;
  EXPECT_NEAR(value_of(pair_angles(a, b)), std::abs(real + imaginary) / std::sqrt(14.0 * 6), 1e-12);
  EXPECT_NEAR(value_of(pair_angles(scale(a, -2), b)), value_of(pair_angles(a, b)), 1e-12);
}

TEST(OrderingLoss, ComparesPairsOfDifferentScores) {
  const Tensor s = tensor_of({0.25f, 0.75f, 0.5f}, {3, 1}, DType::f64);
  // Pair 0 should be less similar than pairs 1 and 2, which have equal scores.
  const double expected =
      std::log(1 + std::exp((0.25 - 0.75) / 0.1) + std::exp((0.25 - 0.5) / 0.1));
  EXPECT_NEAR(value_of(ordering_loss(s, {0, 1, 1}, 0.1f)), expected, 1e-6);
  EXPECT_EQ(value_of(ordering_loss(s, {1, 1, 1}, 0.1f)), 0);
  expect_error(ErrorKind::InvalidArgument, {"ordering_loss: 3 similarities with 2 scores"},
               [&] { ordering_loss(s, {1, 0}, 1); });
}

TEST(TripletLoss, IsTheMeanOverAllNegatives) {
  const Inputs x = anchors_and_candidates();
  const auto distance = [&](int64_t i, int64_t j) {
    double sum = 0;
    for (int64_t c = 0; c < kWidth; ++c)
      sum += std::pow(test::at(x[0], i * kWidth + c) - test::at(x[1], j * kWidth + c) + 1e-6, 2);
    return std::sqrt(sum);
  };
  double sum = 0;
  for (int64_t i = 0; i < kExamples; ++i)
    for (int64_t j = 1; j <= kNegatives; ++j)
      sum += std::max(0.0, distance(i, i) - distance(i, j * kExamples + i) + 0.5);
  EXPECT_NEAR(value_of(triplet_loss(vectors_of(x), 0.5f)), sum / (kExamples * kNegatives), 1e-6);
  const Tensor none = x[1].rows(0, kExamples);
  expect_error(ErrorKind::InvalidArgument, {"no negatives"},
               [&] { triplet_loss({x[0], none}, 1); });
}

TEST(MarginLoss, ComparesDifferencesOfProducts) {
  const Inputs x = anchors_and_candidates();
  const std::vector<float> margins = {1, 0.5f, -1, 0, 2, 0.25f};
  double sum = 0;
  for (int64_t i = 0; i < kExamples; ++i)
    for (int64_t j = 1; j <= kNegatives; ++j)
      sum += std::pow(dot(x[0], i, x[1], i) - dot(x[0], i, x[1], j * kExamples + i) -
                          margins[static_cast<size_t>(i * kNegatives + j - 1)],
                      2);
  EXPECT_NEAR(value_of(margin_loss(vectors_of(x), margins)), sum / 6, 1e-6);
  expect_error(ErrorKind::InvalidArgument, {"margin_loss: 2 margins"},
               [&] { margin_loss(vectors_of(x), {1, 2}); });
}

TEST(ListLoss, IsTheDivergenceFromTheTeacher) {
  const Inputs x = anchors_and_candidates();
  const std::vector<float> scores = {3, -1, 0.5f, 0, 0, 0, 100, -100, 1};
  constexpr double kTemperature = 2;
  double sum = 0;
  for (int64_t i = 0; i < kExamples; ++i) {
    double p[1 + kNegatives], q[1 + kNegatives], all_p = 0, all_q = 0;
    for (int64_t j = 0; j <= kNegatives; ++j) {
      all_p += p[j] = std::exp(scores[static_cast<size_t>(i * 3 + j)] / kTemperature);
      all_q += q[j] = std::exp(dot(x[0], i, x[1], j * kExamples + i) / kTemperature);
    }
    for (int64_t j = 0; j <= kNegatives; ++j)
      sum += p[j] / all_p * std::log(p[j] / all_p / (q[j] / all_q));
  }
  EXPECT_NEAR(value_of(list_loss(vectors_of(x), scores, kTemperature)),
              sum / kExamples * kTemperature * kTemperature, 1e-6);
  expect_error(ErrorKind::InvalidArgument, {"list_loss: 6 scores; expected one for each of 9"},
               [&] { list_loss(vectors_of(x), {1, 2, 3, 4, 5, 6}, 1); });
}

TEST(GuidedLoss, LeavesOutWhatTheGuideFindsMoreSimilar) {
  const Tensor a = tensor_of({1, 0, 0, 1}, {2, 2}), c = tensor_of({0.6f, 0.8f, 0.8f, 0.6f}, {2, 2});
  const auto loss = [&](const ExampleVectors& guide, const NegativeMargin& margin) {
    return value_of(guided_loss({a, c}, guide, 1, margin));
  };
  // By the guide, the positives have the cosine 0.8 and all other texts 0 or less, except for the
  // texts themselves.
  const ExampleVectors guide = {tensor_of({1, 0, 0, 1}, {2, 2}),
                                tensor_of({0.8f, -0.6f, -0.6f, 0.8f}, {2, 2})};
  const double positive = std::exp(0.6), other = std::exp(0.8), anchors = 1, positives = 0.96;
  EXPECT_NEAR(loss(guide, {}),
              -std::log(positive / (positive + other + anchors + std::exp(positives))), 1e-6);
  // A margin above 1.4 leaves out the negatives of the cosine -0.6 too; those of -0.96 stay.
  EXPECT_NEAR(loss(guide, {1.5f}), -std::log(positive / (positive + std::exp(positives))), 1e-6);
  EXPECT_NEAR(loss(guide, {2}), 0, 1e-6);
  EXPECT_NEAR(loss(guide, {1, true}),  // above 0: only the texts themselves
              -std::log(positive / (positive + other + anchors + std::exp(positives))), 1e-6);
}

TEST(EmbeddingLosses, HaveTheGradientsOfTheFormulas) {
  const std::vector<float> teacher = {1, 0.5f, -1, 0, 2, 0.25f, 3, -2, 0};
  const Inputs both = anchors_and_candidates();
  test::check_gradients(both, [&](const Inputs& x) { return vectors_of(x).own_products(); });
  test::check_gradients(both, [&](const Inputs& x) { return triplet_loss(vectors_of(x), 0.5f); });
  test::check_gradients(both, [&](const Inputs& x) {
    return margin_loss(vectors_of(x), {teacher.begin(), teacher.begin() + 6});
  });
  test::check_gradients(both,
                        [&](const Inputs& x) { return list_loss(vectors_of(x), teacher, 0.7f); });
  const Tensor guide[] = {convert(test::normal({kExamples, 4}, 5), DType::f32),
                          convert(test::normal({9, 4}, 6), DType::f32)};
  test::check_gradients(both, [&](const Inputs& x) {
    return guided_loss(vectors_of(x), {guide[0], guide[1]}, 0.3f, {0.1f, true});
  });
  const Inputs pairs = {both[0], test::normal({kExamples, kWidth}, 3)};
  for (const auto& similarity : {pair_cosines, pair_angles}) {
    test::check_gradients(pairs, [&](const Inputs& x) { return similarity(x[0], x[1]); });
    test::check_gradients(pairs, [&](const Inputs& x) {
      return ordering_loss(similarity(x[0], x[1]), {0.5f, 0, 1}, 0.2f);
    });
  }
}

}  // namespace
}  // namespace fovea::train
