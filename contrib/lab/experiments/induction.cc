// Induction heads (Olsson et al. 2022) as they form: heads that attend to the token after an
// earlier occurrence of the current one.

#include <algorithm>

#include "base/error.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kRepeatedTokens = 32, kPeriod = 16, kTwoPeriods = 2 * kPeriod;

// A random sequence, twice. Only the second copy can be predicted, and only it has labels.
Batch repeated(int64_t rows, uint64_t seed, int64_t part) {
  const std::vector<int32_t> draws = random_tokens(rows * kPeriod, kRepeatedTokens, seed, part);
  std::vector<int32_t> ids, labels;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < kTwoPeriods; ++i) {
      ids.push_back(draws[static_cast<size_t>(r * kPeriod + i % kPeriod)]);
      const bool known = i >= kPeriod && i + 1 < kTwoPeriods;
      labels.push_back(known ? draws[static_cast<size_t>(r * kPeriod + (i + 1) % kPeriod)] : -1);
    }
  }
  return batch_of(ids, labels, rows);
}

// Returns the largest of the heads' mean weights at the token after the earlier occurrence.
double best_head(const nn::Transformer& model, const Batch& batch) {
  double best = 0;
  const auto watch = [&](std::string_view, int64_t, Tensor& weights) {  // [B, H, T, S]
    const int64_t B = weights.dim(0), H = weights.dim(1);
    for (int64_t h = 0; h < H; ++h) {
      double sum = 0;
      for (int64_t b = 0; b < B; ++b) {
        const float* head = weights.data_as<float>() + (b * H + h) * kTwoPeriods * kTwoPeriods;
        for (int64_t t = kPeriod; t < kTwoPeriods; ++t)
          sum += double{head[t * kTwoPeriods + t - kPeriod + 1]};
      }
      best = std::max(best, sum / static_cast<double>(B * kPeriod));
    }
  };
  mean_loss(model, {batch}, {.hook = watch, .hooked = {"attention"}});
  return best;
}

Readings forming(const Trial& t) {
  constexpr int64_t kMarks = 8, kUnseen = 1 << 30;
  const int64_t layers = t.arm == "2 layers" ? 2 : 1;
  const nn::Transformer model(
      with_positions(small_decoder(layers, 64, kRepeatedTokens, kTwoPeriods), "rotary"), t.seed);
  const Batch unseen = repeated(32, t.seed, kUnseen);
  const int64_t steps = t.times(800, 4000), part = std::max<int64_t>(1, steps / kMarks);
  Readings readings;
  const auto measure = [&](int64_t step) {
    const auto x = static_cast<double>(step);
    readings.push_back({t.arm + ": best head", x, best_head(model, unseen)});
    readings.push_back({t.arm + ": accuracy", x, accuracy(model, unseen)});
  };
  measure(0);
  train_on(
      model, {.steps = steps, .rate = t.rate},
      [&](int64_t step) { return repeated(32, t.seed, step); },
      [&](int64_t step, double) {
        if ((step + 1) % part == 0 && std::ssize(readings) <= 2 * kMarks) measure(step + 1);
      });
  return readings;
}

std::vector<Conclusion> decide_induction(const Table& table) {
  constexpr double kFormed = 0.5, kUntrained = 0.2;
  std::vector<Case> cases;
  std::string numbers;
  for (const std::string arm : {"1 layer", "2 layers"}) {
    const std::string series = arm + ": best head";
    cases.push_back({"the model has " + arm, std::min(below(table.first(series), kUntrained),
                                                      above(table.last(series), kFormed))});
    numbers += (numbers.empty() ? "" : "; ") + course(table, series) + "; " +
               course(table, arm + ": accuracy");
  }
  return {conclude("CLM-20: the specialisation of heads emerges by itself (induction heads)", cases,
                   numbers)};
}

}  // namespace

Experiment induction() {
  return {.summary = {.name = "induction",
                      .claims = {"CLM-20: the specialisation of heads emerges by itself (induction "
                                 "heads)"},
                      .metric = "weight at the token after an earlier occurrence; accuracy",
                      .axis = "steps",
                      .rule = "holds for a depth if the best head's interval lies below 0.2 before "
                              "training, and above 0.5 after it"},
          .greater_is_better = true,
          .arms = {"1 layer", "2 layers"},
          .rates = {3e-3, 1e-3, 1e-2},
          .measure = forming,
          .conclude = decide_induction};
}

}  // namespace fovea::lab
