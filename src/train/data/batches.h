#pragma once

#include <cstdint>

#include "data/token_store.h"

namespace fovea::train {

// The training samples. A sample is a pure function of the seed and its number, so that a resumed
// run and a run with a different batch size see the same samples. An epoch starts at a random
// phase, cuts the tokens into windows of context + 1 tokens that start every `context` tokens, and
// visits each window once in a random order. If at least two windows fit, an epoch has one window
// fewer than would fit, so that there are more than `context` phases: windows rarely begin at the
// same positions twice. If `fixed`, the windows of all epochs are those of the first one. All
// epochs have the same number of windows; the tokens that one epoch omits occur in others.
class Batches {
 public:
  // Throws InvalidArgument if there are fewer than context + 1 tokens. The tokens must outlive the
  // batches.
  Batches(const TokenSpan& tokens, int64_t context, uint64_t seed, bool fixed = false);

  int64_t windows() const { return windows_; }  // samples per epoch

  // Copies the samples [step * batch, (step + 1) * batch) to ids and targets [batch, context]; the
  // targets are one token ahead.
  void fill(int64_t step, int64_t batch, int32_t* ids, int32_t* targets) const;

 private:
  int64_t window_start(int64_t sample) const;

  TokenSpan tokens_;
  int64_t context_, windows_, phases_;
  uint64_t seed_;
  bool fixed_;
};

// Fixed windows of context + 1 tokens, evenly distributed over the held-out part; every evaluation
// uses the same windows.
class ValidationBatches {
 public:
  ValidationBatches(const TokenSpan& tokens, int64_t context, int64_t eval_windows);

  int64_t windows() const { return windows_; }  // at most eval_windows

  // Copies the windows [first, first + batch), which must exist, to ids and targets [batch,
  // context].
  void fill(int64_t first, int64_t batch, int32_t* ids, int32_t* targets) const;

 private:
  TokenSpan tokens_;
  int64_t context_, windows_;
};

}  // namespace fovea::train
