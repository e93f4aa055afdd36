#pragma once

#include "data/length_batches.h"
#include "train/examples.h"
#include "train/tasks/sequences.h"

namespace fovea {

// Texts as ids, with the type of each token, and their labels: one per text or one per token; below
// 0 = no prediction.
struct LabelledTokens {
  Sequences ids, types, labels;
};

class LabelExamples : public Examples {
 public:
  // `batch`: number of texts, of similar length, in one forward pass.
  LabelExamples(LabelledTokens training, LabelledTokens validation, int64_t batch, const Spec& spec,
                uint64_t seed);

  Batch training(int64_t pass) const override;
  double passes_per_epoch() const override;
  int64_t validation_batches() const override;
  Batch validation(int64_t n) const override;

 private:
  Batch of(const LabelledTokens& texts, const std::vector<int64_t>& samples) const;

  LabelledTokens training_, validation_;
  bool decodes_, by_token_, has_types_;
  int32_t padding_;
  LengthBatches batches_;
  std::optional<LengthBatches> validation_batches_;
};

}  // namespace fovea
