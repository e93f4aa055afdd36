#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fovea/infer/generate.h"

namespace fovea::infer {

// Counts how often each token was generated, for the penalties. Counting takes time proportional to
// the number of new tokens, not to the length of the text.
class TokenCounts {
 public:
  // Counts nothing if the options have no penalty on tokens.
  TokenCounts(const Sampling& options, const std::vector<int32_t>& prompt);

  // Counts the tokens that were appended to `generated` since the last call.
  void follow(const std::vector<int32_t>& generated);

  // Returns how often each token of the prompt and of the generated text was generated; 0 for a
  // token that only the prompt contains.
  const std::unordered_map<int32_t, int64_t>& counts() const { return counts_; }

 private:
  bool wanted_;
  size_t followed_ = 0;  // number of counted tokens of `generated`
  std::unordered_map<int32_t, int64_t> counts_;
};

}  // namespace fovea::infer
