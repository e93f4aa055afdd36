#pragma once

#include "data/length_batches.h"
#include "train/examples.h"
#include "train/tasks/sequences.h"

namespace fovea {

// Sources and targets, including special tokens.
struct TokenPairs {
  Sequences sources, targets;
  int64_t bytes = 0;  // bytes of the text of the targets
};

// The decoder reads `start` and then the target, and predicts each token of the target.
struct PairTokens {
  int32_t start = 0, padding = 0;
};

class PairExamples : public Examples {
 public:
  PairExamples(TokenPairs training, TokenPairs validation, int64_t batch_tokens, PairTokens tokens,
               uint64_t seed);

  Batch training(int64_t pass) const override;
  double passes_per_epoch() const override;
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;

 private:
  Batch of(const TokenPairs& pairs, const std::vector<int64_t>& samples) const;

  TokenPairs training_, validation_;
  PairTokens tokens_;
  LengthBatches batches_;
  std::optional<LengthBatches> validation_batches_;
};

}  // namespace fovea
