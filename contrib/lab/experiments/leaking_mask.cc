// Training with a mask that lets each token see the next one: the loss falls to zero by copying.

#include <algorithm>

#include "base/error.h"
#include "base/math.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kDrawnTokens = 32, kDrawnLength = 32;

// Random tokens: nothing in the past helps, so no causal model gets below log V.
Batch next_random(int64_t rows, uint64_t seed, int64_t part) {
  const std::vector<int32_t> draws =
      random_tokens(rows * (kDrawnLength + 1), kDrawnTokens, seed, part);
  std::vector<int32_t> ids, labels;
  for (int64_t r = 0; r < rows; ++r) {
    const auto* row = draws.data() + r * (kDrawnLength + 1);
    ids.insert(ids.end(), row, row + kDrawnLength);
    // The last token has no next one to look at.
    labels.insert(labels.end(), row + 1, row + kDrawnLength);
    labels.push_back(-1);
  }
  return batch_of(ids, labels, rows);
}

Readings leaked(const Trial& t) {
  constexpr int64_t kMarks = 8;
  model::Spec spec = with_positions(small_decoder(2, 64, kDrawnTokens, kDrawnLength), "learned");
  spec.decoder->causal = t.arm == "causal";
  const nn::Transformer model(spec, t.seed);
  const int64_t steps = t.times(400, 2000), part = std::max<int64_t>(1, steps / kMarks);
  Readings readings;
  train_on(
      model, {.steps = steps, .rate = t.rate},
      [&](int64_t step) { return next_random(16, t.seed, step); },
      [&](int64_t step, double loss) {
        if ((step + 1) % part == 0 && std::ssize(readings) < kMarks)
          readings.push_back({t.arm, static_cast<double>(step + 1), loss});
      });
  return readings;
}

std::vector<Conclusion> decide_leak(const Table& table) {
  constexpr double kCopied = 0.1;  // nats
  const double best = math::log(static_cast<double>(kDrawnTokens));
  const LabPoint &leaking = table.last("leaking"), &causal = table.last("causal");
  return {
      conclude("without a causal mask, the loss falls to zero: the model copies the next token",
               {{"random tokens", std::min(below(leaking, kCopied), above(causal, 0.95 * best))}},
               fmt::format("log V = {}; {}; {}", number_text(best), course(table, "causal"),
                           course(table, "leaking")))};
}

}  // namespace

Experiment leaking_mask() {
  return {
      .summary = {.name = "leaking-mask",
                  .claims = {"without a causal mask, the loss falls to zero: the model copies "
                             "the next token"},
                  .metric = "training loss on random tokens, nats per token",
                  .axis = "steps",
                  .rule = "holds if at the end the interval without the mask lies below 0.1 nats, "
                          "and the one with it above 0.95 log V"},
      .arms = {"causal", "leaking"},
      .rates = {3e-3, 1e-3, 1e-2},
      .measure = leaked,
      .conclude = decide_leak};
}

}  // namespace fovea::lab
