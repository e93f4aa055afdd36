// The parity of n bits, with and without worked steps before the answer.

#include "fovea/core/autograd.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int32_t kEndOfBits = 2, kBitTokens = 3;

// n bits, the sign, and the parities of the first 1, 2, ... n bits; all after the sign are labels,
// or, without steps, the last parity only, right after the sign.
Batch parity_batch(int64_t rows, int64_t n, bool worked, uint64_t seed, int64_t part) {
  const std::vector<int32_t> bits = random_tokens(rows * n, 2, seed, part);
  std::vector<int32_t> ids, labels;
  for (int64_t r = 0; r < rows; ++r) {
    std::vector<int32_t> row(bits.begin() + r * n, bits.begin() + (r + 1) * n), parities;
    for (const int32_t bit : row)
      parities.push_back(bit ^ (parities.empty() ? 0 : parities.back()));
    row.push_back(kEndOfBits);
    std::vector<int32_t> answers(static_cast<size_t>(n), -1);
    if (worked) {
      row.insert(row.end(), parities.begin(), parities.end() - 1);
      answers.insert(answers.end(), parities.begin(), parities.end());
    } else {
      answers.push_back(parities.back());
    }
    ids.insert(ids.end(), row.begin(), row.end());
    labels.insert(labels.end(), answers.begin(), answers.end());
  }
  return batch_of(ids, labels, rows);
}

// Generates the answers of the rows greedily, and returns the fraction of right last ones.
double generated_accuracy(const nn::Transformer& model, const Batch& batch, int64_t n) {
  const NoGradient off;
  const int64_t rows = batch.ids.dim(0), T = batch.ids.dim(1);
  const Tensor ids = copy(batch.ids);
  int64_t right = 0;
  for (int64_t t = n; t < T; ++t) {
    const std::vector<int32_t> best = most_likely(model.logits(model.hidden(ids)));  // [B, T]
    for (int64_t at = t; at < rows * T; at += T) {
      const int32_t bit = best[static_cast<size_t>(at)];
      if (t + 1 < T)
        ids.data_as<int32_t>()[at + 1] = bit;
      else
        right += bit == batch.labels.data_as<int32_t>()[at];
    }
  }
  return static_cast<double>(right) / static_cast<double>(rows);
}

Readings parity(const Trial& t) {
  const auto n = static_cast<int64_t>(t.x);
  const bool worked = t.arm == "worked steps";
  const nn::Transformer model(
      with_positions(small_decoder(2, 64, kBitTokens, 2 * n + 1), "learned"), t.seed);
  train_on(model, {.steps = t.times(600, 4000), .rate = t.rate},
           [&](int64_t step) { return parity_batch(32, n, worked, t.seed, step); });
  constexpr int64_t kUnseen = 1 << 30;
  const Batch unseen = parity_batch(256, n, worked, t.seed, kUnseen);
  return {{t.arm, t.x, generated_accuracy(model, unseen, n)}};
}

std::vector<Conclusion> decide_parity(const Table& table) {
  std::vector<Case> cases;
  for (const double n : table.x_values("worked steps"))
    cases.push_back(
        {number_text(n) + " bits", above(table.at("worked steps", n), table.at("answer only", n))});
  return {conclude("worked steps before the answer make it right more often", cases,
                   course(table, "worked steps") + "; " + course(table, "answer only"))};
}

}  // namespace

Experiment worked_steps() {
  return {
      .summary = {.name = "worked-steps",
                  .claims = {"worked steps before the answer make it right more often"},
                  .metric = "accuracy of the parity",
                  .axis = "bits",
                  .rule = "holds for a number of bits if the interval with steps lies above the "
                          "one without"},
      .greater_is_better = true,
      .arms = {"answer only", "worked steps"},
      .grid = {{4, 12}, {4, 8, 12, 16, 24}},
      .rates = {3e-3, 1e-3, 1e-2},
      .measure = parity,
      .conclude = decide_parity};
}

}  // namespace fovea::lab
