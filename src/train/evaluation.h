#pragma once

#include <functional>

#include "train/examples.h"

namespace fovea {

struct Score {
  double loss = 0;    // mean negative log-likelihood of an asked label, in nats
  int64_t asked = 0;  // labels
  // Of encoders and classifiers, each asked label and the most likely output.
  std::vector<std::pair<int32_t, int32_t>> answers;
};

// What a model makes of `count` batches, of which `batch(n)` gives the n-th.
Score score(const Transformer& model, DType compute, int64_t count,
            const std::function<Batch(int64_t n)>& batch);
// Of the held-out part.
Score score(const Transformer& model, DType compute, const Examples& examples);

double accuracy(const Score& score);
// Of each label the harmonic mean of precision and recall, and the mean over the labels that are
// there (macro F1).
double mean_f1(const Score& score);

// From nats a token to bits a byte of the text that the tokens stand for.
double bits_per_byte(double loss, int64_t tokens, int64_t bytes);

}  // namespace fovea
