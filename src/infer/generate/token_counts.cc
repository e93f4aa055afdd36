#include "generate/token_counts.h"

namespace fovea::infer {

TokenCounts::TokenCounts(const Sampling& options, const std::vector<int32_t>& prompt)
    : wanted_(options.repetition_penalty != 1 || options.presence_penalty != 0 ||
              options.frequency_penalty != 0) {
  if (!wanted_) return;
  for (const int32_t id : prompt) counts_[id] = 0;
}

void TokenCounts::follow(const std::vector<int32_t>& generated) {
  if (!wanted_) return;
  for (; followed_ < generated.size(); ++followed_) ++counts_[generated[followed_]];
}

}  // namespace fovea::infer
