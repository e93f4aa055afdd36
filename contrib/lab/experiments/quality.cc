// Loss on text of attention and of recurrence at equal parameters and equal steps.

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

Readings loss_of_mixers(const Trial& t) {
  const auto length = static_cast<int64_t>(t.x);
  const nn::Transformer model(small_mixture(t.arm, 2, 64, t.text->vocabulary(), length), t.seed);
  const int64_t rows = std::max<int64_t>(1, 1024 / length);
  return {{t.arm, t.x,
           loss_on_text(model, t, {.steps = t.times(250, 3000), .rows = rows, .length = length})}};
}

std::vector<Conclusion> decide_quality(const Table& table) {
  std::vector<Case> cases;
  for (const std::string cell : {"rnn", "gru", "lstm"})
    for (const double length : table.x_values(cell))
      cases.push_back({fmt::format("against {} with {} tokens", cell, length),
                       above(table.at(cell, length), table.at("attention", length))});
  std::vector<std::string> numbers;
  for (const std::string& name : table.series()) numbers.push_back(course(table, name));
  return {conclude("attention predicts text better than a recurrence of equal size", cases,
                   fmt::format("nats per character; {}", fmt::join(numbers, "; ")))};
}

}  // namespace

Experiment quality() {
  return {
      .summary = {.name = "quality",
                  .claims = {"attention predicts text better than a recurrence of equal size"},
                  .metric = "loss on held-out text, nats per character",
                  .axis = "tokens per sequence",
                  .rule = "holds for a cell and a length if the interval of its loss lies above "
                          "that of attention, after equal steps with equal parameters",
                  .reads_text = true},
      .arms = {"attention", "rnn", "gru", "lstm"},
      .grid = {{64}, {64, 256}},
      .rates = {2e-3, 1e-3, 4e-3, 8e-3},
      .measure = loss_of_mixers,
      .conclude = decide_quality};
}

}  // namespace fovea::lab
