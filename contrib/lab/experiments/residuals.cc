// Models without residual connections, by depth.

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

Readings loss_of_residuals(const Trial& t) {
  model::Spec spec = small_decoder(static_cast<int64_t>(t.x), 64, t.text->vocabulary(), 64);
  spec.decoder->residual = t.arm == "with residuals";
  if (!spec.decoder->residual) spec.decoder->init_scale = 1;  // no sum whose size must not grow
  const nn::Transformer model(spec, t.seed);
  return {{t.arm, t.x, loss_on_text(model, t, {.steps = t.times(200, 2000)})}};
}

std::vector<Conclusion> decide_residuals(const Table& table) {
  constexpr double kNats = 0.1;
  std::vector<Case> cases;
  for (const double depth : table.x_values("with residuals")) {
    const LabPoint &with = table.at("with residuals", depth), &without = table.at("without", depth);
    cases.push_back({fmt::format("the depth is {}", depth), above(without, with, 1, kNats)});
  }
  return {conclude("CLM-08: deep models need residual connections", cases,
                   course(table, "with residuals") + "; " + course(table, "without"))};
}

}  // namespace

Experiment residuals() {
  return {
      .summary = {.name = "residuals",
                  .claims = {"CLM-08: deep models need residual connections"},
                  .metric = "loss on held-out text, nats per character",
                  .axis = "layers",
                  .rule = "holds at a depth if the interval without residuals lies more than 0.1 "
                          "nats above the one with them",
                  .reads_text = true},
      .arms = {"with residuals", "without"},
      .grid = {{1, 4, 8}, {1, 2, 4, 8, 16}},
      .rates = {2e-3, 1e-3, 5e-4, 4e-3},
      .measure = loss_of_residuals,
      .conclude = decide_residuals};
}

}  // namespace fovea::lab
