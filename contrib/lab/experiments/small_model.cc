// A small model of characters after some minutes of training, beside tables of frequencies.

#include <algorithm>
#include <array>
#include <map>

#include "base/math.h"
#include "lab/conclude.h"
#include "lab/experiments.h"
#include "lab/training.h"

namespace fovea::lab {
namespace {

constexpr int64_t kWindow = 64;

constexpr int kPredecessors = 2;  // predecessors

// Frequencies of tokens after their last predecessors, smoothed by those after fewer ones (Witten
// and Bell 1991).
class Frequencies {
 public:
  Frequencies(std::span<const int32_t> ids, int64_t vocabulary)
      : vocabulary_(static_cast<double>(vocabulary)) {
    for (size_t i = 0; i < ids.size(); ++i)
      for (int n = 0; n <= kPredecessors && static_cast<size_t>(n) <= i; ++n)
        ++counts_[key(ids.data() + i, n)][ids[i]];
  }

  // The probability of *token after the `order` tokens before it.
  double probability(const int32_t* token, int order) const {
    double p = 1 / vocabulary_;
    for (int n = 0; n <= order; ++n) {
      const auto found = counts_.find(key(token, n));
      if (found == counts_.end()) break;
      double total = 0;
      for (const auto& [id, count] : found->second) total += count;
      const auto kinds = static_cast<double>(found->second.size());
      const auto own = found->second.find(*token);
      p = ((own == found->second.end() ? 0 : own->second) + kinds * p) / (total + kinds);
    }
    return p;
  }

 private:
  using Key = std::array<int32_t, kPredecessors + 1>;  // the number of predecessors, and these
  static Key key(const int32_t* token, int n) {
    Key k = {n, -1, -1};
    for (int i = 0; i < n; ++i) k[static_cast<size_t>(i) + 1] = token[-1 - i];
    return k;
  }

  double vocabulary_;
  std::map<Key, std::map<int32_t, double>> counts_;
};

double loss_of(const Frequencies& frequencies, int order, const std::vector<Batch>& batches) {
  double sum = 0, count = 0;
  for (const Batch& batch : batches) {
    for (int64_t i = 0; i < batch.labels.size(); ++i) {
      const int64_t t = i % kWindow;
      // A window and the token after it are consecutive in the text.
      std::vector<int32_t> row(batch.ids.data_as<int32_t>() + i - t,
                               batch.ids.data_as<int32_t>() + i + 1);
      row.push_back(batch.labels.data_as<int32_t>()[i]);
      const int known = std::min(order, static_cast<int>(t + 1));
      sum -= math::log(frequencies.probability(&row.back(), known));
      ++count;
    }
  }
  return sum / count;
}

Readings learned_structure(const Trial& t) {
  const Text& text = *t.text;
  const nn::Transformer model(small_decoder(3, 64, text.vocabulary(), kWindow), t.seed);
  const int64_t steps = t.times(1500, 10000);
  train_on(model, {.steps = steps, .rate = t.rate},
           [&](int64_t step) { return text.training_batch(step, 16, kWindow, t.seed); });
  const std::vector<Batch> held_out = text.held_out_batches(t.times(256), 16, kWindow);
  Readings readings = {{"Transformer", 0, mean_loss(model, held_out)}};
  const Frequencies frequencies(text.training(), text.vocabulary());
  const char* names[] = {"frequencies", "pairs", "triples"};
  for (int order = 0; order <= kPredecessors; ++order)
    readings.push_back({names[order], 0, loss_of(frequencies, order, held_out)});
  return readings;
}

std::vector<Conclusion> decide_small(const Table& table) {
  const LabPoint& ours = table.first("Transformer");
  std::vector<Case> cases;
  std::string numbers = "Transformer " + text_of(ours);
  for (const std::string name : {"frequencies", "pairs", "triples"}) {
    const LabPoint& theirs = table.first(name);
    cases.push_back({"compared with " + name, below(ours, theirs.mean)});
    numbers += ", " + name + " " + number_text(theirs.mean);
  }
  return {conclude("CLM-14: a small model learns the structure of a language in minutes on 1 MB",
                   cases, numbers)};
}

}  // namespace

Experiment small_model() {
  return {
      .summary = {.name = "small-model",
                  .claims = {"CLM-14: a small model learns the structure of a language in minutes "
                             "on 1 MB"},
                  .metric = "loss on held-out text, nats per character",
                  .axis = "(one place)",
                  .rule = "holds beside a table of frequencies (of single characters, pairs and "
                          "triples) if the interval of the loss lies below the table's",
                  .reads_text = true},
      .arms = {"3 layers of width 64"},
      .rates = {2e-3, 1e-3, 4e-3},
      .measure = learned_structure,
      .conclude = decide_small};
}

}  // namespace fovea::lab
