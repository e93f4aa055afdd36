#pragma once

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "fovea/generate.h"

namespace fovea {

// Draws tokens from logits. The n-th draw of a seed is always the same, whatever else is generated.
class Sampler {
 public:
  explicit Sampler(const Sampling& options);  // InvalidArgument where an option is out of its range

  // logits [V]; `seen` are the tokens so far, for the repetition penalty. NaN logits are refused
  // (Failed).
  int32_t operator()(const float* logits, int64_t vocabulary, const std::vector<int32_t>& seen);

  // The distribution from which the next token would be drawn: (token, probability), likeliest
  // first.
  struct Candidate {
    int32_t token;
    float probability;
  };
  std::vector<Candidate> distribution(const float* logits, int64_t vocabulary,
                                      const std::vector<int32_t>& seen) const;

 private:
  Sampling options_;
  Random random_;
};

}  // namespace fovea
