// Training speed of attention and of recurrence at equal parameters.

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr double kFactor = 3;

Readings time_of_training(const Trial& t) {
  constexpr int64_t kTokens = 2048;  // per step
  const auto length = static_cast<int64_t>(t.x);
  const int64_t rows = std::max<int64_t>(1, kTokens / length);
  Transformer model = new_model(small_mixture(t.arm, 2, 128, 64, length), t.seed);
  const double seconds = fastest_step(model, t.times(20, 50), rows, length);
  return {{t.arm, t.x, 1e6 * seconds / static_cast<double>(rows * length)}};
}

std::vector<Conclusion> decide_speed(const Table& table) {
  std::vector<Case> cases;
  std::vector<std::string> numbers;
  for (const std::string cell : {"rnn", "gru", "lstm"}) {
    for (const double length : table.places(cell)) {
      const LabPoint &theirs = table.at(cell, length), &ours = table.at("attention", length);
      cases.push_back(
          {fmt::format("against {} with {} tokens", cell, length), above(theirs, ours, kFactor)});
      numbers.push_back(
          fmt::format("{} at {}: {} times", cell, length, number_text(ratio(theirs, ours))));
    }
  }
  return {conclude("CLM-01: a Transformer trains 3 to 5 times faster than an RNN or LSTM", cases,
                   fmt::format("{}", fmt::join(numbers, ", ")))};
}

}  // namespace

Experiment speed() {
  return {
      .summary = {.name = "speed",
                  .claims = {"CLM-01: a Transformer trains 3 to 5 times faster than an RNN or "
                             "LSTM"},
                  .metric = "microseconds per token of training",
                  .axis = "tokens per sequence",
                  .rule = "holds for a cell and a length if the interval of its time lies above "
                          "3 times that of attention, with equal parameters"},
      .logarithmic = true,
      .arms = {"attention", "rnn", "gru", "lstm"},
      .grid = {{64, 256}, {64, 256, 1024}},
      .measure = time_of_training,
      .conclude = decide_speed};
}

}  // namespace fovea::lab
