// All heads in one call of attention, against one call for each.

#include "base/error.h"
#include "fovea/core/autograd.h"
#include "fovea/core/ops.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kLoopRows = 8, kLoopTokens = 128, kHeadWidth = 32;

Readings time_of_calls(const Trial& t) {
  const auto heads = static_cast<int64_t>(t.x);
  const int64_t calls = t.arm == "loop" ? heads : 1;
  const Shape shape = {kLoopRows, kLoopTokens, heads / calls, kHeadWidth};
  std::vector<std::vector<Tensor>> inputs(static_cast<size_t>(calls));
  for (std::vector<Tensor>& call : inputs)
    for (uint32_t i = 0; i < 3; ++i) call.push_back(normal(shape, 1, t.seed, i).want_gradient());
  AttentionOptions options;
  options.mask.causal = true;
  const double seconds = fastest_seconds(t.times(50, 200), [&] {
    for (const std::vector<Tensor>& x : inputs) {
      backward(sum(attention(x[0], x[1], x[2], options)));
      for (const Tensor& each : x) each.clear_gradient();
    }
  });
  return {{t.arm, t.x, 1e6 * seconds / static_cast<double>(kLoopRows * kLoopTokens)}};
}

std::vector<Conclusion> decide_loop(const Table& table) {
  std::vector<Case> cases;
  std::string numbers;
  for (const double x : table.x_values("loop")) {
    const LabPoint &loop = table.at("loop", x), &batched = table.at("batched", x);
    cases.push_back({fmt::format("{} heads", x), above(loop, batched)});
    numbers += (numbers.empty() ? "" : "; ") + compared(loop, batched);
  }
  return {conclude("CLM-06: batched heads are faster than a loop over heads", cases, numbers)};
}

}  // namespace

Experiment head_loop() {
  return {.summary = {.name = "head-loop",
                      .claims = {"CLM-06: batched heads are faster than a loop over heads"},
                      .metric = "microseconds per token, forward and backward",
                      .axis = "heads of width 32",
                      .rule = "holds for a number of heads if the interval of the loop lies above "
                              "that of the batch"},
          .logarithmic = true,
          .arms = {"batched", "loop"},
          .grid = {{2, 4, 12}, {2, 4, 12, 32}},
          .measure = time_of_calls,
          .conclude = decide_loop};
}

}  // namespace fovea::lab
