#pragma once

#include "data/permutation.h"
#include "train/examples.h"

namespace fovea {

// The prompts of a run in the order of their use; each epoch has another order. A task writes the
// answers itself, so there are no batches.
class PromptExamples : public Examples {
 public:
  // `steps`: optimiser steps for each `batch` prompts.
  PromptExamples(int64_t prompts, int64_t batch, int64_t steps, uint64_t seed)
      : prompts_(prompts), batch_(batch), steps_(steps), seed_(seed) {}

  // Returns the prompts of the n-th batch.
  std::vector<size_t> prompts(int64_t n) const {
    std::vector<size_t> found;
    for (int64_t i = n * batch_; i < (n + 1) * batch_; ++i) {
      const auto epoch = static_cast<uint64_t>(i / prompts_),
                 place = static_cast<uint64_t>(i % prompts_);
      found.push_back(Permutation(static_cast<uint64_t>(prompts_), seed_ + epoch)(place));
    }
    return found;
  }

  Batch training(int64_t) const override { return {}; }
  double passes_per_epoch() const override {
    return static_cast<double>(prompts_) / static_cast<double>(batch_) *
           static_cast<double>(steps_);
  }
  int64_t validation_batches() const override { return 0; }
  Batch validation(int64_t) const override { return {}; }

 private:
  int64_t prompts_, batch_, steps_;
  uint64_t seed_;
};

}  // namespace fovea
