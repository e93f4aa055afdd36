#pragma once

#include "data/weighted_order.h"
#include "loop/examples.h"

namespace fovea::train {

// The prompts of a run in the order of their use; each epoch has another order. A task writes the
// answers itself, so there are no batches.
class PromptExamples : public Examples {
 public:
  // `groups`: the prompts of each file; `steps`: optimiser steps for each `batch` prompts.
  PromptExamples(std::vector<WeightedGroup> groups, int64_t batch, int64_t steps, uint64_t seed)
      : prompts_(std::move(groups),
                 [seed](int64_t epoch, size_t which) {
                   return seed + static_cast<uint64_t>(epoch) + (uint64_t{which} << 40);
                 }),
        batch_(batch),
        steps_(steps) {}

  int64_t per_epoch() const { return prompts_.per_epoch(); }
  // Returns the prompts of the n-th batch.
  std::vector<size_t> prompts(int64_t n) const {
    std::vector<size_t> found;
    for (int64_t i = n * batch_; i < (n + 1) * batch_; ++i)
      found.push_back(static_cast<size_t>(prompts_[i]));
    return found;
  }

  Batch training(int64_t) const override { return {}; }
  double passes_per_epoch() const override {
    return static_cast<double>(prompts_.per_epoch()) / static_cast<double>(batch_) *
           static_cast<double>(steps_);
  }
  int64_t validation_batches() const override { return 0; }
  Batch validation(int64_t) const override { return {}; }

 private:
  WeightedItems prompts_;
  int64_t batch_, steps_;
};

}  // namespace fovea::train
