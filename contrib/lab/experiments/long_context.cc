// Full attention over up to 100,000 tokens: the time of one head, and the memory.

#include <algorithm>

#include "base/error.h"
#include "base/machine.h"
#include "fovea/core/autograd.h"
#include "fovea/core/ops.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kLongHeadWidth = 32;
constexpr double kClaimed = 100000, kModelHeads = 144;  // 12 layers of 12 heads
constexpr double kHour = 3600, kMegabyte = 1 << 20;

Readings cost_of_head(const Trial& t) {
  const int64_t n = t.times(static_cast<int64_t>(t.x));
  std::vector<Tensor> inputs;
  for (uint32_t i = 0; i < 3; ++i)
    inputs.push_back(normal({1, n, 1, kLongHeadWidth}, 1, t.seed, i));
  AttentionOptions options;
  options.mask.causal = true;
  const NoGradient off;
  reset_peak_memory();
  const size_t before = tensor_memory().live;
  const double seconds =
      fastest_seconds(1, [&] { attention(inputs[0], inputs[1], inputs[2], options); });
  const size_t peak = tensor_memory().peak - before;
  return {{"seconds", t.x, seconds}, {"MB", t.x, static_cast<double>(peak) / kMegabyte}};
}

std::vector<Conclusion> decide_long(const Table& table) {
  const LabPoint &seconds = table.last("seconds"), &memory = table.last("MB");
  const double whole = seconds.mean * kModelHeads;
  const double machine = static_cast<double>(total_memory()) / kMegabyte;
  return {conclude(
      "CLM-16: 100,000 tokens are infeasible with full attention",
      {{"100,000 tokens", std::max(above(seconds, kHour / kModelHeads), above(memory, machine))}},
      fmt::format(
          "one head takes {} s and {} MB, 144 heads {} min; the matrix of weights would take "
          "{} MB for each head",
          number_text(seconds.mean), number_text(memory.mean), number_text(whole / 60),
          number_text(4 * kClaimed * kClaimed / kMegabyte)))};
}

}  // namespace

Experiment long_context() {
  return {
      .summary = {.name = "long-context",
                  .claims = {"CLM-16: 100,000 tokens are infeasible with full attention"},
                  .metric = "seconds, and MB of tensors, of one head of width 32, forward",
                  .axis = "tokens",
                  .rule = "holds if at 100,000 tokens the 144 heads of a small model (12 layers "
                          "of 12) would take over an hour, or one more memory than the machine "
                          "has"},
      .logarithmic = true,
      .arms = {"tiled attention"},
      .grid = {{12500, 25000, 50000, kClaimed}, {12500, 25000, 50000, kClaimed}},
      .measure = cost_of_head,
      .conclude = decide_long};
}

}  // namespace fovea::lab
