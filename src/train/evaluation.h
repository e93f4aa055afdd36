#pragma once

#include <functional>

#include "train/examples.h"

namespace fovea {

struct Score {
  double loss = 0;    // mean negative log-likelihood of an asked label, in nats
  int64_t asked = 0;  // labels
};

// What a model makes of `count` batches, of which `batch(n)` gives the n-th.
Score score(const Transformer& model, DType compute, int64_t count,
            const std::function<Batch(int64_t n)>& batch);
// Of the held-out part.
Score score(const Transformer& model, DType compute, const Examples& examples);

// From nats a token to bits a byte of the text that the tokens stand for.
double bits_per_byte(double loss, int64_t tokens, int64_t bytes);

}  // namespace fovea
