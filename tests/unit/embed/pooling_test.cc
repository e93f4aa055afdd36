#include "embed/pooling.h"

#include <cmath>

#include "support/expect_error.h"
#include "support/gradient_check.h"

namespace fovea::infer {
namespace {

// Texts of three tokens and of one token; the values of the padding must not be used.
const Tensor hidden = tensor_of({1, -2, 3, 4, 5, 0, /**/ 7, 8, 99, 99, -99, 99}, {2, 3, 2});
const std::vector<Interval> tokens = {{0, 3}, {0, 1}};

std::vector<float> pooled(TokenPooling mode, const std::vector<Interval>& rows = tokens) {
  return to_floats(pool_tokens(hidden, mode, rows));
}

void expect_near(const std::vector<float>& found, const std::vector<float>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

TEST(TokenPooling, MatchesItsDefinition) {
  const float root = std::sqrt(3.0f);
  expect_near(pooled(TokenPooling::cls), {1, -2, 7, 8});
  expect_near(pooled(TokenPooling::last), {5, 0, 7, 8});
  expect_near(pooled(TokenPooling::max), {5, 4, 7, 8});
  expect_near(pooled(TokenPooling::mean), {3, 2.0f / 3, 7, 8});
  expect_near(pooled(TokenPooling::mean_sqrt_len), {9 / root, 2 / root, 7, 8});
  expect_near(pooled(TokenPooling::weighted_mean), {22.0f / 6, 1, 7, 8});
}

TEST(TokenPooling, ExcludesAPromptButKeepsPositions) {
  const std::vector<Interval> rows = {{1, 3}, {0, 1}};
  expect_near(pooled(TokenPooling::cls, rows), {3, 4, 7, 8});
  expect_near(pooled(TokenPooling::mean, rows), {4, 2, 7, 8});
  expect_near(pooled(TokenPooling::weighted_mean, rows), {21.0f / 5, 8.0f / 5, 7, 8});
}

TEST(TokenPooling, RefusesRowsWithoutTokens) {
  for (const Interval bad : {Interval{1, 1}, {0, 4}, {-1, 2}})
    expect_error(ErrorKind::InvalidArgument, {"pooling", "at least one"},
                 [&] { pool_tokens(hidden, TokenPooling::max, {bad, {0, 1}}); });
}

TEST(TokenPooling, HasTheGradientsOfTheFormulas) {
  const std::vector<Interval> rows = {{1, 4}, {0, 2}};
  for (const TokenPooling mode :
       {TokenPooling::cls, TokenPooling::max, TokenPooling::mean, TokenPooling::mean_sqrt_len,
        TokenPooling::weighted_mean, TokenPooling::last})
    test::check_gradients({test::normal({2, 4, 3}, 5)}, [&](const std::vector<Tensor>& x) {
      return unit_length(concat_width(
          {pool_tokens(x[0], mode, rows), pool_tokens(x[0], TokenPooling::mean, rows)}));
    });
}

TEST(AttentionPooling, MatchesItsDefinition) {
  const Tensor vector = tensor_of({0.5f, -1}, {2});
  // Scores 0.5 + 2, 1.5 - 4 and 2.5.
  const double e0 = std::exp(0.0), e1 = std::exp(-5.0), e2 = std::exp(0.0), sum = e0 + e1 + e2;
  expect_near(to_floats(attention_pooling(hidden, vector, tokens)),
              {static_cast<float>((e0 * 1 + e1 * 3 + e2 * 5) / sum),
               static_cast<float>((e0 * -2 + e1 * 4) / sum), 7, 8});
  expect_near(to_floats(attention_pooling(hidden, zeros({2}), tokens)), {3, 2.0f / 3, 7, 8});
}

TEST(AttentionPooling, GivesTheSameBitsInAnyBatch) {
  const Tensor x = convert(test::normal({1, 9, 5}, 3), DType::f32),
               vector = convert(test::normal({5}, 4), DType::f32);
  const std::vector<float> alone = to_floats(attention_pooling(x, vector, {{0, 9}}));
  for (const int64_t length : {10, 16, 33}) {
    const Tensor padded = full({2, length, 5}, 3);
    std::copy_n(x.data_as<float>(), x.size(), padded.data_as<float>());
    const Tensor both = attention_pooling(padded, vector, {{0, 9}, {0, length}});
    EXPECT_EQ(to_floats(both.rows(0, 1)), alone) << length;
  }
}

TEST(AttentionPooling, HasTheGradientsOfTheFormula) {
  const std::vector<Interval> rows = {{1, 4}, {0, 2}};
  test::check_gradients(
      {test::normal({2, 4, 3}, 5), test::normal({3}, 6)},
      [&](const std::vector<Tensor>& x) { return attention_pooling(x[0], x[1], rows); });
}

TEST(UnitLength, KeepsAZeroVector) {
  const std::vector<float> y =
      to_floats(unit_length(tensor_of({3, 4, 0, 0, 3e-8f, 4e-8f}, {3, 2})));
  expect_near(y, {0.6f, 0.8f, 0, 0, 0.6f, 0.8f});
}

TEST(ConcatWidth, ConcatenatesRows) {
  const Tensor a = tensor_of({1, 2, 3, 4}, {2, 2}), b = tensor_of({5, 6, 7, 8}, {2, 2});
  expect_near(to_floats(concat_width({a, b, a})), {1, 2, 5, 6, 1, 2, 3, 4, 7, 8, 3, 4});
}

}  // namespace
}  // namespace fovea::infer
