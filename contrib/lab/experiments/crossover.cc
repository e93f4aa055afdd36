// The time of a layer's mixer by the number of tokens n, at a width d of 64.

#include <algorithm>

#include "fovea/core/autograd.h"
#include "lab/costs.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr double kMixerWidth = 64;

Readings time_of_mixer(const Trial& t) {
  const auto n = static_cast<int64_t>(t.x);
  const int64_t rows = std::max<int64_t>(1, 4096 / n);
  model::Spec spec = small_mixture(t.arm, 1, static_cast<int64_t>(kMixerWidth), 16, n);
  spec.decoder->ffn = {.present = false};
  const nn::Transformer model(spec, t.seed);
  const std::vector<int32_t> ids = random_tokens(rows * n, 16, t.seed, 0);
  const Tensor tokens = tensor_of(ids, {rows, n});
  const NoGradient off;
  const double seconds = fastest_seconds(t.times(20, 50), [&] { model.hidden(tokens); });
  return {{t.arm, t.x, 1e6 * seconds / static_cast<double>(rows * n)}};
}

std::vector<Conclusion> decide_crossover(const Table& table) {
  return {conclude_crossover("CLM-13: attention takes less time than a recurrence only for n < d",
                             table, "", kMixerWidth)};
}

}  // namespace

Experiment crossover() {
  return {
      .summary = {.name = "crossover",
                  .claims = {"CLM-13: attention takes less time than a recurrence only for n < d"},
                  .metric = "microseconds per token of one mixer, forward",
                  .axis = "n, tokens per sequence",
                  .rule = "holds for a cell if attention is cheaper at all measured n up to one "
                          "between d/2 and 2d, and not at the next one; d = 64"},
      .logarithmic = true,
      .arms = {"attention", "rnn", "gru", "lstm"},
      .grid = {{16, 32, 64, 128, 256, 512, 1024, 2048},
               {16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}},
      .measure = time_of_mixer,
      .conclude = decide_crossover};
}

}  // namespace fovea::lab
