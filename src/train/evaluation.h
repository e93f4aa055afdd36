#pragma once

#include <functional>

#include "train/examples.h"

namespace fovea {

struct Score {
  double loss = 0;    // mean negative log-likelihood of a label, in nats
  int64_t asked = 0;  // number of labels
  // For encoders and classifiers: each label and the most likely output.
  std::vector<std::pair<int32_t, int32_t>> answers;
};

// Evaluates a model on `count` batches; `batch(n)` returns the n-th.
Score score(const Transformer& model, DType compute, int64_t count,
            const std::function<Batch(int64_t n)>& batch);
// Evaluates on the held-out part.
Score score(const Transformer& model, DType compute, const Examples& examples);

double accuracy(const Score& score);
// The harmonic mean of precision and recall for each label, averaged over the labels that occur
// (macro F1).
double mean_f1(const Score& score);

// Converts nats per token to bits per byte of the text of the tokens.
double bits_per_byte(double loss, int64_t tokens, int64_t bytes);

}  // namespace fovea
