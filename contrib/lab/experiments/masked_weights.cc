// The attention weights of masked keys.

#include "fovea/core/ops.h"
#include "lab/conclude.h"
#include "lab/experiments.h"

namespace fovea::lab {
namespace {

Readings largest_masked(const Trial& t) {
  const auto T = static_cast<int64_t>(t.x);
  constexpr int64_t kHeadCount = 4, kWidthOfHead = 16;
  constexpr float kLarge = 10;  // scores of some hundreds, where a finite mask could fail
  const Tensor q = normal({1, T, kHeadCount, kWidthOfHead}, kLarge, t.seed, 0),
               k = normal({1, T, kHeadCount, kWidthOfHead}, 1, t.seed, 1);
  AttentionOptions options;
  options.mask.causal = true;
  const Tensor weights = attention_weights(q, k, options);  // [1, H, T, S]
  float largest = 0;
  for (int64_t i = 0; i < weights.size(); ++i) {
    const int64_t query = i / T % T, key = i % T;
    if (key > query) largest = std::max(largest, weights.data_as<float>()[i]);
  }
  return {{t.arm, t.x, double{largest}}};
}

std::vector<Conclusion> decide_masked(const Table& table) {
  std::vector<Case> cases;
  for (const double x : table.x_values("causal"))
    cases.push_back({std::to_string(static_cast<int64_t>(x)) + " tokens",
                     outcome_of(table.at("causal", x).high == 0)});
  return {conclude("CLM-23: the causal mask's weights are exactly zero", cases,
                   course(table, "causal"))};
}

}  // namespace

Experiment masked_weights() {
  return {.summary = {.name = "masked-weights",
                      .claims = {"CLM-23: the causal mask's weights are exactly zero"},
                      .metric = "largest attention weight of a masked key",
                      .axis = "tokens per sequence",
                      .rule = "holds at a length if no weight of a masked key differs from 0"},
          .logarithmic = true,
          .arms = {"causal"},
          .grid = {{16, 64, 256}, {16, 64, 256, 1024}},
          .measure = largest_masked,
          .conclude = decide_masked};
}

}  // namespace fovea::lab
