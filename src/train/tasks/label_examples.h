#pragma once

#include <limits>

#include "tasks/length_examples.h"
#include "tasks/sequences.h"

namespace fovea::train {

// Texts as ids, with the type of each token, and their labels: one per text or one per token; below
// 0 = no prediction.
struct LabelledTokens {
  Sequences ids, types, labels;
  // Spans: labels are the first and the last token of the answer, and an answer can have tokens
  // [contexts[i].begin, contexts[i].end) of text i.
  std::vector<Interval> contexts = {};
  // multi_label, regression: the targets of all texts, as in Batch: [count * outputs]
  std::vector<float> targets = {};
  std::shared_ptr<const std::vector<float>> label_weights = nullptr;
};

class LabelExamples : public LengthExamples<LabelledTokens> {
 public:
  static constexpr int64_t kNoLimit = std::numeric_limits<int64_t>::max();
  struct Settings {
    model::ProblemType problem = model::ProblemType::single_label;
    int64_t batch = 1;  // maximum number of texts, of similar length, in one forward pass
    // Encoder-decoders: the decoder reads the text shifted by one, after this token.
    int32_t decoder_start = 0;
    uint64_t seed = 0;
    int64_t tokens = kNoLimit;  // maximum number of tokens in one forward pass of several texts
  };
  LabelExamples(LabelledTokens training, LabelledTokens validation, const Settings& settings,
                const model::Spec& spec);

 private:
  Batch of(const LabelledTokens& texts, const std::vector<int64_t>& samples) const override;

  void read(const LabelledTokens& texts, const std::vector<int64_t>& samples, Batch& batch) const;

  Settings settings_;
  bool encodes_, decodes_, by_token_, has_types_;
  int32_t padding_;
  int64_t outputs_;
};

}  // namespace fovea::train
