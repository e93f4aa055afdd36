#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "fovea/generate.h"

namespace fovea {

// Draws tokens from logits. The n-th draw of a seed is always the same, independent of other
// requests; the answers of one request have separate random streams.
class Sampler {
 public:
  // Throws InvalidArgument if an option is out of range.
  explicit Sampler(const Sampling& options, int64_t answer = 0);

  // logits [V], after the rules. Throws Failed if a logit is NaN.
  int32_t operator()(const float* logits, int64_t vocabulary);

  // The distribution of the next token: pairs (token, probability), in an order that depends only
  // on these logits and the options.
  struct Candidate {
    int32_t token;
    float probability;
  };
  std::vector<Candidate> distribution(const float* logits, int64_t vocabulary) const;

 private:
  Sampling options_;
  Random random_;
};

// For logits [V]: log softmax at `id`, and the `count` most likely tokens with theirs.
TokenLogprob logprob_of(const float* logits, int64_t vocabulary, int32_t id, int64_t count);
// log of the sum of exp(logits), in double.
double log_sum(const float* logits, int64_t vocabulary);

}  // namespace fovea
