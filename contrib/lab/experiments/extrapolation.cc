// Loss on longer texts than in training, by the scheme of positions.

#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kTrained = 64, kLongest = 512;

Readings losses_by_length(const Trial& t) {
  const model::Spec spec = small_decoder(2, 64, t.text->vocabulary(), kLongest);
  const nn::Transformer model(with_positions(spec, t.arm), t.seed);
  const Text& text = *t.text;
  train_on(model, {.steps = t.times(300, 4000), .rate = t.rate},
           [&](int64_t step) { return text.training_batch(step, 16, kTrained, t.seed); });
  Readings readings;
  for (int64_t length = kTrained; length <= kLongest; length *= 2) {
    const int64_t windows = t.times(128 * kTrained / length);  // equal numbers of tokens
    readings.push_back({t.arm, static_cast<double>(length),
                        mean_loss(model, text.held_out_batches(windows, 8, length))});
  }
  return readings;
}

Case extrapolates(const Table& table, const std::string& scheme, double length) {
  constexpr double kNats = 0.1;
  const LabPoint &trained = table.at(scheme, kTrained), &longer = table.at(scheme, length);
  return {std::to_string(static_cast<int64_t>(length)) + " tokens",
          below(longer, trained.mean + kNats)};
}

std::vector<Conclusion> decide_extrapolation(const Table& table) {
  std::vector<Conclusion> conclusions;
  const auto add = [&](const std::string& claim, const std::string& scheme) {
    std::vector<Case> cases;
    for (const double x : table.x_values(scheme))
      if (x > kTrained) cases.push_back(extrapolates(table, scheme, x));
    conclusions.push_back(conclude(claim, cases, course(table, scheme)));
  };
  add("CLM-10: sinusoids extrapolate to unseen lengths", "sinusoidal");
  add("CLM-11: ALiBi generalises to longer sequences without fine-tuning", "alibi");
  add("rotary positions extrapolate to unseen lengths", "rotary");
  add("learned positions extrapolate to unseen lengths", "learned");
  return conclusions;
}

}  // namespace

Experiment extrapolation() {
  return {
      .summary = {.name = "extrapolation",
                  .claims = {"CLM-10: sinusoids extrapolate to unseen lengths",
                             "CLM-11: ALiBi generalises to longer sequences without fine-tuning",
                             "rotary positions extrapolate to unseen lengths",
                             "learned positions extrapolate to unseen lengths"},
                  .metric = "loss on held-out text, nats per character",
                  .axis = "tokens per sequence, after training with 64",
                  .rule = "holds at a length if the interval of the loss lies below the loss at "
                          "64 tokens plus 0.1 nats",
                  .reads_text = true},
      .logarithmic = true,
      .arms = {"learned", "sinusoidal", "rotary", "alibi", "none"},
      .rates = {2e-3, 1e-3, 4e-3},
      .measure = losses_by_length,
      .conclude = decide_extrapolation};
}

}  // namespace fovea::lab
