// Training speed of attention and of recurrence at equal parameters.

#include <algorithm>

#include "lab/costs.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr double kFactor = 3;

Readings time_of_training(const Trial& t) {
  constexpr int64_t kTokens = 2048;  // per step
  const auto length = static_cast<int64_t>(t.x);
  const int64_t rows = std::max<int64_t>(1, kTokens / length);
  const nn::Transformer model(small_mixture(t.arm, 2, 128, 64, length), t.seed);
  const double seconds = fastest_step(model, t.times(20, 50), rows, length);
  return {{t.arm, t.x, 1e6 * seconds / static_cast<double>(rows * length)}};
}

std::vector<Conclusion> decide_speed(const Table& table) {
  return {conclude_ratio(
      "CLM-01: a Transformer trains in a third to a fifth of the time of an RNN or LSTM", table, "",
      kFactor)};
}

}  // namespace

Experiment speed() {
  return {
      .summary = {.name = "speed",
                  .claims = {"CLM-01: a Transformer trains in a third to a fifth of the time of "
                             "an RNN or LSTM"},
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
