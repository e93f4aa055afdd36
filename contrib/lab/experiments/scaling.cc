// The loss on text by the size of the model, at equal data; fovea scale fits a law to more runs.

#include <algorithm>

#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

Readings loss_of_size(const Trial& t) {
  const auto width = static_cast<int64_t>(t.x);
  const nn::Transformer model(small_decoder(2, width, t.text->vocabulary(), 64), t.seed);
  return {{t.arm, t.x, loss_on_text(model, t, {.steps = t.times(400, 5000)})}};
}

// Each doubling of the width must help, and by less than the one before.
std::vector<Conclusion> decide_scaling(const Table& table) {
  const std::string series = table.series()[0];
  const std::vector<double> widths = table.x_values(series);
  std::vector<Case> cases;
  for (size_t i = 1; i < widths.size(); ++i) {
    const LabPoint &small = table.at(series, widths[i - 1]), &large = table.at(series, widths[i]);
    const auto less_than_before = [&] {
      return below(by_seed(table,
                           [&](const SeedValue& value) {
                             const auto gain = [&](size_t to) {
                               return value(series, widths[to - 1]) - value(series, widths[to]);
                             };
                             return gain(i) - gain(i - 1);
                           }),
                   0);
    };
    cases.push_back(
        {"from width " + number_text(widths[i - 1]) + " to " + number_text(widths[i]),
         i == 1 ? above(small, large) : std::min(above(small, large), less_than_before())});
  }
  return {conclude("CLM-17: doubling gives diminishing but steady gains", cases,
                   course(table, series))};
}

}  // namespace

Experiment scaling() {
  return {.summary = {.name = "scaling",
                      .claims = {"CLM-17: doubling gives diminishing but steady gains"},
                      .metric = "loss on held-out text, nats per character",
                      .axis = "width of the model",
                      .rule = "holds for a doubling of the width if the interval of the loss lies "
                              "below the smaller model's, and the gain is less than the one before",
                      .reads_text = true},
          .logarithmic = true,
          .arms = {"2 layers"},
          .grid = {{16, 32, 64, 128}, {16, 32, 64, 128, 256}},
          .rates = {2e-3, 1e-3, 4e-3},
          .measure = loss_of_size,
          .conclude = decide_scaling};
}

}  // namespace fovea::lab
