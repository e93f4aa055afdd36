// The training time of many heads and of one head of their total width.

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr double kSame = 1.25;

Readings time_of_heads(const Trial& t) {
  constexpr int64_t kTotalWidth = 128, kTokens = 128, kRows = 16;
  model::Spec spec = small_decoder(2, kTotalWidth, 64, kTokens);
  spec.decoder->attention.heads = t.arm == "one head" ? 1 : static_cast<int64_t>(t.x);
  const nn::Transformer model(spec, t.seed);
  const double seconds = fastest_step(model, t.times(20, 50), kRows, kTokens);
  return {{t.arm, t.x, 1e6 * seconds / static_cast<double>(kRows * kTokens)}};
}

std::vector<Conclusion> decide_heads(const Table& table) {
  std::vector<Case> cases;
  std::string numbers;
  for (const double x : table.x_values("many heads")) {
    const LabPoint &many = table.at("many heads", x), &one = table.at("one head", x);
    cases.push_back({fmt::format("{} heads", x), above(one, many, 1 / kSame)});
    numbers += (numbers.empty() ? "" : "; ") + compared(many, one);
  }
  return {conclude("CLM-05: many heads cost about as much as one of their total width", cases,
                   numbers)};
}

}  // namespace

Experiment wide_head() {
  return {
      .summary = {.name = "wide-head",
                  .claims = {"CLM-05: many heads cost about as much as one of their total width"},
                  .metric = "microseconds per token of training",
                  .axis = "heads, of a width of 128 together",
                  .rule = "holds for a number of heads if its interval lies below 1.25 times that "
                          "of one head"},
      .logarithmic = true,
      .arms = {"one head", "many heads"},
      .grid = {{2, 4, 8}, {2, 4, 8, 16}},
      .measure = time_of_heads,
      .conclude = decide_heads};
}

}  // namespace fovea::lab
