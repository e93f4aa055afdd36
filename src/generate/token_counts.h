#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fovea/generate.h"

namespace fovea {

// How often each token occurs, for the penalties. Counting grows with the new tokens of a step, not
// with the length of the text.
class TokenCounts {
 public:
  // Counts nothing if the options have no penalty on tokens.
  TokenCounts(const Sampling& options, const std::vector<int32_t>& prompt);

  // Counts the tokens that were appended to `written` since the last call.
  void follow(const std::vector<int32_t>& written);

  // The tokens of the prompt and the written ones: how often each was written, 0 or more times.
  const std::unordered_map<int32_t, int64_t>& counts() const { return counts_; }

 private:
  bool wanted_;
  size_t followed_ = 0;  // of the written tokens
  std::unordered_map<int32_t, int64_t> counts_;
};

}  // namespace fovea
