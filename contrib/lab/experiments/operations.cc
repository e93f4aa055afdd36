// The floating-point operations of attention and of recurrences, counted: those of training at
// equal parameters, and those of one mixer. No time is measured.

#include "fovea/train/plan.h"
#include "lab/costs.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr double kTimesFewer = 3, kCountedWidth = 64, kThousand = 1e3;

Readings counted(const Trial& t) {
  const auto n = static_cast<int64_t>(t.x);
  const train::PlanOptions of_length{.length = n};
  const double forward =
      train::plan(small_mixture(t.arm, 2, 128, 64, n), of_length).flops_per_token;
  model::Spec mixer = small_mixture(t.arm, 1, static_cast<int64_t>(kCountedWidth), 16, n);
  mixer.decoder->ffn = {.present = false};
  double flops = 0;  // without those of the head
  for (const train::PlanPart& part : train::plan(mixer, of_length).parts)
    if (part.name.starts_with("attention") || part.name == "recurrence") flops += part.flops;
  // The backward pass takes twice as many as the forward pass.
  return {{t.arm + ": training", t.x, 3 * forward / kThousand},
          {t.arm + ": mixer", t.x, flops / (t.x * kThousand)}};
}

std::vector<Conclusion> decide_operations(const Table& table) {
  return {conclude_ratio("CLM-01: training a Transformer takes a third to a fifth of the "
                         "operations of an RNN or LSTM",
                         table, ": training", kTimesFewer),
          conclude_crossover("CLM-13: attention takes fewer operations than a recurrence only for "
                             "n < d",
                             table, ": mixer", kCountedWidth)};
}

}  // namespace

Experiment operations() {
  return {
      .summary = {.name = "operations",
                  .claims = {"CLM-01: training a Transformer takes a third to a fifth of the "
                             "operations of an RNN or LSTM",
                             "CLM-13: attention takes fewer operations than a recurrence only for "
                             "n < d"},
                  .metric = "thousands of floating-point operations per token, of training and of "
                            "one mixer, forward",
                  .axis = "n, tokens per sequence",
                  .rule = "CLM-01 holds for a cell and a length if its training takes 3 times the "
                          "operations of attention, with equal parameters; CLM-13 holds for a "
                          "cell if attention takes fewer at all n up to one between d/2 and 2d, "
                          "and not at the next one; d = 64"},
      .logarithmic = true,
      .arms = {"attention", "rnn", "gru", "lstm"},
      .grid = {{16, 32, 64, 128, 256, 512, 1024, 2048},
               {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}},
      .measure = counted,
      .conclude = decide_operations};
}

}  // namespace fovea::lab
