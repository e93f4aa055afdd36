// Recall of a symbol by distance: the first token of a sequence must be repeated after noise.

#include <algorithm>

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int32_t kSymbols = 16, kNoise = 16, kQuery = kSymbols + kNoise;
constexpr double kFar = 48;  // "by step 50"

// symbol, distance - 1 tokens of noise, the query, whose label is the symbol.
Batch recall_batch(int64_t rows, int64_t distance, uint64_t seed, int64_t part) {
  std::vector<int32_t> ids, labels;
  const std::vector<int32_t> draws =
      random_tokens(rows * (distance + 1), kSymbols, seed, part);  // kNoise equals kSymbols
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i <= distance; ++i) {
      const int32_t draw = draws[static_cast<size_t>(r * (distance + 1) + i)];
      ids.push_back(i == 0 ? draw : i == distance ? kQuery : kSymbols + draw);
      labels.push_back(i == distance ? ids[static_cast<size_t>(r * (distance + 1))] : -1);
    }
  }
  return batch_of(ids, labels, rows);
}

Readings recalled(const Trial& t) {
  const auto distance = static_cast<int64_t>(t.x);
  const nn::Transformer model(small_mixture(t.arm, 2, 64, kQuery + 1, distance + 1), t.seed);
  train_on(model, {.steps = t.times(300, 2000), .rate = t.rate},
           [&](int64_t step) { return recall_batch(32, distance, t.seed, step); });
  constexpr int64_t kUnseen = 1 << 30;  // parts that training does not reach
  return {{t.arm, t.x, accuracy(model, recall_batch(512, distance, t.seed, kUnseen))}};
}

std::vector<Conclusion> decide_recall(const Table& table) {
  constexpr double kWeak = 0.5, kStrong = 0.95;
  const LabPoint &lstm = table.at("lstm", kFar), &attention = table.at("attention", kFar);
  std::vector<Case> equal;
  for (const double x : table.x_values("attention"))
    equal.push_back(
        {fmt::format("the distance is {}", x), above(table.at("attention", x), kStrong)});
  return {conclude("CLM-02: the signal of an LSTM is much weaker by step 50",
                   {{"the distance is 48", std::min(below(lstm, kWeak), above(attention, lstm))}},
                   course(table, "lstm") + "; " + course(table, "lstm+attention")),
          conclude("CLM-15: attention is equally strong at any distance", equal,
                   course(table, "attention"))};
}

}  // namespace

Experiment recall() {
  return {
      .summary = {.name = "recall",
                  .claims = {"CLM-02: the signal of an LSTM is much weaker by step 50",
                             "CLM-15: attention is equally strong at any distance"},
                  .metric = "accuracy of the recalled symbol, of 16",
                  .axis = "distance in tokens",
                  .rule = "CLM-02 holds if the LSTM's interval at distance 48 lies below 0.5 and "
                          "below attention's; CLM-15 holds at a distance where attention's "
                          "interval lies above 0.95"},
      .greater_is_better = true,
      .logarithmic = true,
      .arms = {"lstm", "attention", "lstm+attention"},
      .grid = {{4, 16, kFar}, {1, 4, 16, kFar, 128, 500}},
      .rates = {3e-3, 1e-3, 1e-2},
      .measure = recalled,
      .conclude = decide_recall};
}

}  // namespace fovea::lab
