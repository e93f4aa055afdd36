// Sensitivity to the learning rate with and without layer norms.

#include <algorithm>

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

Readings loss_of_norm(const Trial& t) {
  model::Spec spec = small_decoder(6, 64, t.text->vocabulary(), 64);
  if (t.arm == "no norm") {
    spec.decoder->placement = {.input = false, .output = false, .sum = false};
    spec.decoder->final_norm = false;
  }
  const nn::Transformer model(spec, t.seed);
  Trial at_rate = t;
  at_rate.rate = t.x;  // the axis
  return {{t.arm, t.x, loss_on_text(model, at_rate, {.steps = t.times(200, 2000)})}};
}

// The range of the losses over the learning rates.
LabPoint spread(const Table& table, const std::string& series) {
  return by_seed(table, [&](const SeedValue& value) {
    double least = value(series, table.first(series).x), most = least;
    for (const double x : table.x_values(series)) {
      least = std::min(least, value(series, x));
      most = std::max(most, value(series, x));
    }
    return most - least;
  });
}

std::vector<Conclusion> decide_norm(const Table& table) {
  const LabPoint with = spread(table, "layer norm"), without = spread(table, "no norm");
  const LabPoint &stable = table.last("layer norm"), &unstable = table.last("no norm");
  return {conclude(
      "CLM-22: layer norms make training less sensitive to the learning rate",
      {{"rates up to the highest", std::min(above(without, with, 2), above(unstable, stable))}},
      fmt::format("the losses vary by {} with norms, by {} without; {}; {}", number_text(with.mean),
                  number_text(without.mean), course(table, "layer norm"),
                  course(table, "no norm")))};
}

}  // namespace

Experiment norm() {
  return {.summary = {.name = "norm",
                      .claims = {"CLM-22: layer norms make training less sensitive to the learning "
                                 "rate"},
                      .metric = "loss on held-out text, nats per character",
                      .axis = "learning rate",
                      .rule = "holds if the range of losses over the rates is more than twice as "
                              "large without norms, and the loss at the highest rate is greater",
                      .reads_text = true},
          .logarithmic = true,
          .arms = {"layer norm", "no norm"},
          .grid = {{1e-3, 4e-3, 1.6e-2}, {2.5e-4, 1e-3, 4e-3, 1.6e-2, 6.4e-2}},
          .measure = loss_of_norm,
          .conclude = decide_norm};
}

}  // namespace fovea::lab
