#pragma once

#include "train/tasks/length_examples.h"
#include "train/tasks/sequences.h"

namespace fovea {

// Texts as ids, with the type of each token, and their labels: one per text or one per token; below
// 0 = no prediction.
struct LabelledTokens {
  Sequences ids, types, labels;
};

class LabelExamples : public LengthExamples<LabelledTokens> {
 public:
  // `batch`: maximum number of texts, of similar length, in one forward pass.
  LabelExamples(LabelledTokens training, LabelledTokens validation, int64_t batch, const Spec& spec,
                uint64_t seed);

 private:
  Batch of(const LabelledTokens& texts, const std::vector<int64_t>& samples) const override;

  bool decodes_, by_token_, has_types_;
  int32_t padding_;
};

}  // namespace fovea
