#pragma once

#include <cstdint>
#include <vector>

#include "data/local_order.h"
#include "data/token_store.h"

namespace fovea::train {

// Texts from which samples are drawn. An epoch contains the text of each `weight` times.
struct WeightedText {
  TokenSpan tokens;
  double weight = 1;
};
using TextMixture = std::vector<WeightedText>;

// The training samples. A sample is a pure function of the seed and its number, so that a resumed
// run and a run with a different batch size see the same samples. An epoch cuts each text at a
// random phase into windows of context + 1 tokens that start every `context` tokens, and visits
// each window once, or as often as the weight of its text says, in a random order. If at least two
// windows fit, an epoch has one window fewer than would fit, so that there are more than `context`
// phases: windows rarely begin at the same positions twice. If `fixed`, the windows of all epochs
// are those of the first one. All epochs have the same number of windows; the tokens that one epoch
// omits occur in others. Windows of more than `shuffled` tokens in an epoch are not shuffled all
// together, but in parts of this size (LocalOrder).
class Batches {
 public:
  static constexpr int64_t kShuffled = int64_t{1} << 28;
  // Throws InvalidArgument if a text has fewer than context + 1 tokens. The tokens must outlive the
  // batches.
  Batches(TextMixture texts, int64_t context, uint64_t seed, bool fixed = false,
          int64_t shuffled = kShuffled);

  int64_t windows() const { return order_.per_epoch(); }  // samples per epoch

  // Copies the samples [step * batch, (step + 1) * batch) to ids and targets [batch, context]; the
  // targets are one token ahead.
  void fill(int64_t step, int64_t batch, int32_t* ids, int32_t* targets) const;

 private:
  TextMixture texts_;
  int64_t context_;
  uint64_t seed_;
  bool fixed_;
  std::vector<WeightedGroup> groups_;  // the windows of each text
  LocalOrder order_;
};

// Fixed windows of context + 1 tokens, evenly distributed over the held-out parts of all texts;
// every evaluation uses the same windows. Weights do not matter.
class ValidationBatches {
 public:
  ValidationBatches(TextMixture texts, int64_t context, int64_t eval_windows);

  int64_t windows() const { return windows_; }  // at most eval_windows

  // Copies the windows [first, first + batch), which must exist, to ids and targets [batch,
  // context].
  void fill(int64_t first, int64_t batch, int32_t* ids, int32_t* targets) const;

 private:
  TextMixture texts_;
  int64_t context_, all_ = 0, windows_;
};

}  // namespace fovea::train
