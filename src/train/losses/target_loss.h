#pragma once

#include "losses/batch.h"

namespace fovea::train {

// Returns whether the loss of a batch is target_loss(), not the cross-entropy of its labels.
inline bool has_target_loss(const Batch& batch) {
  return batch.as<WeightedLabels>() || batch.as<LabelSets>() || batch.as<Numbers>() ||
         batch.as<AnswerSpans>();
}

// The logits of the first and the last token of an answer, where padding has kNoToken.
// [B, T, 2] -> [B * 2, T]
Tensor span_logits(const Tensor& logits, const std::vector<Interval>& valid);
inline constexpr float kNoToken = -1e9f;

// Returns the loss of a head's outputs, summed over texts and divided by `divisor`: f64 [1].
//   logits [B, L]; labels: those of HeadInputs, i32 [B]
//   label sets    sum over labels of -w log sigmoid(target * logit) / L, where w is the label's
//                 weight if the text has it, else 1
//   numbers       (logit - target)^2
//   a span        -log softmax over tokens (logits)[label], for the first and for the last token;
//                 logits [B, T, 2], labels [B, 2]
//   single_label  -w log softmax(logits)[label], where w is the weight of the label
Tensor target_loss(const Tensor& logits, const Tensor& labels, const Batch& batch, double divisor);

}  // namespace fovea::train
