#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "fovea/generate.h"

namespace fovea {

// Draws tokens from logits. The n-th draw of a seed is always the same, whatever else is generated;
// answers to the same request draw from streams of their own.
class Sampler {
 public:
  // InvalidArgument where an option is out of its range.
  explicit Sampler(const Sampling& options, int64_t answer = 0);

  // logits [V], restrained already. NaN logits are refused (Failed).
  int32_t operator()(const float* logits, int64_t vocabulary);

  // The distribution from which the next token would be drawn: (token, probability), in an order
  // that depends on these logits and the options alone.
  struct Candidate {
    int32_t token;
    float probability;
  };
  std::vector<Candidate> distribution(const float* logits, int64_t vocabulary) const;

 private:
  Sampling options_;
  Random random_;
};

// Of logits [V]: log softmax at `id`, and the `count` likeliest tokens with theirs.
TokenLogprob logprob_of(const float* logits, int64_t vocabulary, int32_t id, int64_t count);
// log of the sum of exp(logits), in double.
double log_sum(const float* logits, int64_t vocabulary);

}  // namespace fovea
