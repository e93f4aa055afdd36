#pragma once

#include "tasks/length_examples.h"
#include "tasks/sequences.h"

namespace fovea::train {

// Sources and targets, including special tokens.
struct TokenPairs {
  Sequences sources, targets;
  int64_t bytes = 0;  // bytes of the text of the targets
};

// The decoder reads `start` and then the target, and predicts each token of the target.
struct PairTokens {
  int32_t start = 0, padding = 0;
};

class PairExamples : public LengthExamples<TokenPairs> {
 public:
  // `batch_tokens`: maximum number of tokens, including padding, of the sources of a batch, and of
  // its targets.
  PairExamples(TokenPairs training, TokenPairs validation, int64_t batch_tokens, PairTokens tokens,
               uint64_t seed);

 private:
  Batch of(const TokenPairs& pairs, const std::vector<int64_t>& samples) const override;

  PairTokens tokens_;
};

}  // namespace fovea::train
