// Word order without positions: which of two marked tokens comes first.

#include <algorithm>

#include "fovea/core/random.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int32_t kFirst = 0, kSecond = 1, kOrderTokens = 10;
constexpr const char* kCausal = "none, causal";

// Rows of other tokens with one kFirst and one kSecond; the label is whether kFirst comes first.
Batch order_batch(int64_t rows, int64_t length, uint64_t seed, int64_t part) {
  std::vector<int32_t> ids, labels;
  Random random(seed, Stream::sampling, static_cast<uint32_t>(part));
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random.word() % static_cast<uint32_t>(n));
  };
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t a = below(length), step = 1 + below(length - 1), b = (a + step) % length;
    for (int64_t i = 0; i < length; ++i) {
      const auto other = static_cast<int32_t>(2 + below(kOrderTokens - 2));
      ids.push_back(i == a ? kFirst : i == b ? kSecond : other);
    }
    labels.push_back(a < b ? 1 : 0);
  }
  return batch_of(ids, labels, rows);
}

model::Spec order_spec(const std::string& arm, int64_t length) {
  model::Spec spec = small_decoder(2, 32, kOrderTokens, length);
  spec = with_positions(spec, arm);
  spec.head.kind = model::HeadKind::sequence;
  spec.head.labels = 2;
  spec.head.pooling = model::Pooling::mean;
  if (arm == kCausal) return spec;
  spec.encoder = spec.decoder;
  spec.decoder.reset();
  return spec;
}

Readings order_found(const Trial& t) {
  const auto length = static_cast<int64_t>(t.x);
  const nn::Transformer model(order_spec(t.arm, length), t.seed);
  train_on(model, {.steps = t.times(400, 2000), .rate = t.rate},
           [&](int64_t step) { return order_batch(32, length, t.seed, step); });
  constexpr int64_t kUnseen = 1 << 30;
  return {{t.arm, t.x, accuracy(model, order_batch(1024, length, t.seed, kUnseen))}};
}

std::vector<Conclusion> decide_order(const Table& table) {
  constexpr double kChance = 0.6, kLearned = 0.9;
  Outcome others = Outcome::fails;
  for (const std::string scheme : {"sinusoidal", "learned", "rotary"})
    others = std::max(others, above(table.last(scheme), kLearned));
  const auto cannot = [&](const std::string& arm) {
    return std::min(others, below(table.last(arm), kChance));
  };
  std::string numbers;
  for (const std::string& arm : table.series())
    numbers += (numbers.empty() ? "" : "; ") + course(table, arm);
  return {conclude(
      "without positions, attention cannot tell the order of words",
      {{"attention sees both sides", cannot("none")}, {"attention is causal", cannot(kCausal)}},
      numbers)};
}

}  // namespace

Experiment no_positions() {
  return {
      .summary = {.name = "no-positions",
                  .claims = {"without positions, attention cannot tell the order of words"},
                  .metric = "accuracy: which of two tokens comes first",
                  .axis = "tokens per sequence",
                  .rule = "holds for a kind of attention if its interval without positions lies "
                          "below 0.6, and that of a scheme of positions above 0.9"},
      .greater_is_better = true,
      .arms = {"none", "sinusoidal", "learned", "rotary", kCausal},
      .grid = {{8}, {8, 16, 32}},
      .rates = {3e-3, 1e-3, 1e-2},
      .measure = order_found,
      .conclude = decide_order};
}

}  // namespace fovea::lab
