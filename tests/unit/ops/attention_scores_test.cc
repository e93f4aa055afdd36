#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/ops.h"
#include "unit/ops/cases.h"

namespace fovea {
namespace {

// The softmax of the scores, computed here, gives the weights of the attention kernels; masked keys
// have a score of -inf.
void expect_softmax_of_scores(Shape q_shape, Shape k_shape, const AttentionOptions& options) {
  const Tensor q = convert(test::rounded(std::move(q_shape), 1, 1.5), DType::f32);
  const Tensor k = convert(test::rounded(std::move(k_shape), 2, 1.5), DType::f32);
  const Tensor weights = attention_weights(q, k, options);
  const Tensor scores = attention_scores(q, k, options);
  ASSERT_EQ(scores.shape(), weights.shape());
  const int64_t S = weights.dim(3);
  for (int64_t r = 0; r < weights.size() / S; ++r) {
    const float* w = weights.data_as<float>() + r * S;
    const float* s = scores.data_as<float>() + r * S;
    double sum = 0;
    for (int64_t i = 0; i < S; ++i) sum += std::exp(double{s[i]});
    for (int64_t i = 0; i < S; ++i) {
      EXPECT_EQ(s[i] == -std::numeric_limits<float>::infinity(), w[i] == 0) << r << " " << i;
      if (sum > 0) {
        EXPECT_NEAR(std::exp(double{s[i]}) / sum, double{w[i]}, 2e-6) << r << " " << i;
      }
    }
  }
}

TEST(AttentionScores, HaveTheWeightsAsTheirSoftmax) {
  AttentionOptions options;
  options.scale = 0.3f;
  expect_softmax_of_scores({2, 5, 4, 3}, {2, 9, 2, 3}, options);
  options.mask.causal = true;
  options.mask.first_query = 4;
  options.mask.window = 2;
  options.mask.global = 1;
  expect_softmax_of_scores({2, 5, 4, 3}, {2, 9, 2, 3}, options);
  options.mask.valid = {{4, 4}, {6, 9}};  // row 0 has no keys
  options.softcap = 2;
  options.bias = convert(test::rounded({2, 4, 5 + 9 - 1}, 3), DType::f32);  // a table for each row
  expect_softmax_of_scores({2, 5, 4, 3}, {2, 9, 1, 3}, options);
  options.keys = 7;
  options.bias = convert(test::rounded({4, 5 + 7 - 1}, 3), DType::f32);
  expect_softmax_of_scores({2, 5, 4, 3}, {2, 9, 1, 3}, options);
}

TEST(WeightedValues, OfTheAttentionWeightsAreTheOutputsOfTheHeads) {
  const Tensor q = convert(test::rounded({2, 5, 4, 3}, 1), DType::f32);
  const Tensor k = convert(test::rounded({2, 9, 2, 3}, 2), DType::f32);
  const Tensor v = convert(test::rounded({2, 9, 2, 7}, 3), DType::f32);
  const std::vector<float> expected = to_floats(attention(q, k, v, {}));
  const std::vector<float> found = to_floats(weighted_values(attention_weights(q, k, {}), v));
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace fovea
