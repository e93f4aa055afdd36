// Norms before or after the sums, by depth.

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

Readings loss_of_placement(const Trial& t) {
  model::Spec spec = small_decoder(static_cast<int64_t>(t.x), 64, t.text->vocabulary(), 64);
  if (t.arm == "post-norm") {
    spec.decoder->placement = {.input = false, .output = false, .sum = true};
    spec.decoder->final_norm = false;
  }
  const nn::Transformer model(spec, t.seed);
  return {{t.arm, t.x, loss_on_text(model, t, {.steps = t.times(200, 2000)})}};
}

std::vector<Conclusion> decide_placement(const Table& table) {
  const LabPoint &deep_pre = table.last("pre-norm"), &deep_post = table.last("post-norm");
  const LabPoint &pre = table.first("pre-norm"), &post = table.first("post-norm");
  const std::string numbers = course(table, "pre-norm") + "; " + course(table, "post-norm");
  return {
      conclude("CLM-07: pre-norm is more stable at depth",
               {{fmt::format("the depth is {}", deep_pre.x), above(deep_post, deep_pre)}}, numbers),
      conclude("CLM-07: post-norm ends slightly better when tuned",
               {{fmt::format("the depth is {}", pre.x), above(pre, post)}}, numbers)};
}

}  // namespace

Experiment norm_placement() {
  return {
      .summary = {.name = "norm-placement",
                  .claims = {"CLM-07: pre-norm is more stable at depth",
                             "CLM-07: post-norm ends slightly better when tuned"},
                  .metric = "loss on held-out text, nats per character",
                  .axis = "layers",
                  .rule = "the first holds if post-norm's interval lies above pre-norm's at the "
                          "greatest depth, the second if it lies below at the smallest",
                  .reads_text = true},
      .arms = {"pre-norm", "post-norm"},
      .grid = {{2, 12}, {2, 6, 12, 24}},
      .rates = {2e-3, 1e-3, 5e-4, 4e-3},
      .measure = loss_of_placement,
      .conclude = decide_placement};
}

}  // namespace fovea::lab
