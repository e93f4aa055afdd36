// How much of the gradient of a prediction reaches a token at a distance, before training.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/math.h"
#include "fovea/core/autograd.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kFarthest = 128, kStep50 = 50;

// Returns the norms of the gradients with respect to the embeddings, by distance from the last
// token.
std::vector<double> gradient_norms(const nn::Transformer& model, const Batch& batch) {
  Tensor leaf;
  const auto watch = [&](std::string_view, int64_t, Tensor& x) {
    leaf = x.detach();
    x = leaf.want_gradient();
  };
  backward(loss_of(model, batch, {.hook = watch, .hooked = {"embedding"}}));
  const Tensor gradient = leaf.gradient();  // [B, T, C]
  const int64_t B = gradient.dim(0), T = gradient.dim(1), C = gradient.dim(2);
  std::vector<double> norms;
  for (int64_t distance = 0; distance < T; ++distance) {
    double squares = 0;
    for (int64_t b = 0; b < B; ++b) {
      const float* g = gradient.data_as<float>() + (b * T + T - 1 - distance) * C;
      for (int64_t c = 0; c < C; ++c) squares += double{g[c]} * double{g[c]};
    }
    norms.push_back(std::sqrt(squares));
  }
  return norms;
}

Readings faded(const Trial& t) {
  constexpr int64_t kRows = 8, kVocabulary = 64, kTokens = kFarthest + 1;
  const nn::Transformer model(small_mixture(t.arm, 2, 64, kVocabulary, kTokens), t.seed);
  std::vector<int32_t> labels(kRows * kTokens, -1);
  const std::vector<int32_t> ids = random_tokens(kRows * kTokens, kVocabulary, t.seed, 0);
  for (int64_t r = 0; r < kRows; ++r)
    labels[static_cast<size_t>(r * kTokens + kFarthest)] = ids[static_cast<size_t>(r)];
  const std::vector<double> norms = gradient_norms(model, batch_of(ids, labels, kRows));
  Readings readings;
  for (const int64_t d : {int64_t{1}, int64_t{4}, int64_t{16}, kStep50, kFarthest}) {
    const double share = norms[static_cast<size_t>(d)] / norms[1];
    readings.push_back(
        {t.arm, static_cast<double>(d), math::log10(std::max(share, 1e-12))});  // not -infinity
  }
  return readings;
}

std::vector<Conclusion> decide_fading(const Table& table) {
  constexpr double kHundredth = -2, kTenth = -1;
  const LabPoint& attention = table.at("attention", kStep50);
  std::vector<Case> cases;
  std::vector<std::string> numbers = {course(table, "attention")};
  for (const std::string cell : {"rnn", "gru", "lstm"}) {
    const LabPoint& point = table.at(cell, kStep50);
    cases.push_back(
        {"the cell is " + cell, std::min(below(point, kHundredth), above(attention, kTenth))});
    numbers.push_back(course(table, cell));
  }
  return {
      conclude("CLM-02: the gradient of a recurrence fades with distance, that of attention "
               "does not",
               cases, fmt::format("log10; {}", fmt::join(numbers, "; ")))};
}

}  // namespace

Experiment gradient_distance() {
  return {
      .summary = {.name = "gradient-distance",
                  .claims = {"CLM-02: the gradient of a recurrence fades with distance, that of "
                             "attention does not"},
                  .metric = "log10 of the gradient's norm, relative to distance 1",
                  .axis = "distance in tokens",
                  .rule = "holds for a cell if its interval at distance 50 lies below -2 and "
                          "attention's above -1, in untrained models"},
      .logarithmic = true,
      .arms = {"rnn", "gru", "lstm", "attention"},
      .measure = faded,
      .conclude = decide_fading};
}

}  // namespace fovea::lab
