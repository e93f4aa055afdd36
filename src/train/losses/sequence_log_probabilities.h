#pragma once

#include "losses/batch.h"

namespace fovea::train {

// The log-probabilities of the labels of a batch whose texts are listed (Batch::texts).
struct SequenceLogProbabilities {
  Tensor tokens;     // f32 [R]: log softmax(logits)[label] of each label, text by text
  Tensor sums;       // f64 [N]: their sum for each text
  Tensor side_loss;  // f64 [1]: the sum of the side losses of the layers; unset = none
};
// Computes them without storing large logits. The numbers of a text have the same bits whichever
// texts share its batch. Side losses are computed if the pass is for training.
SequenceLogProbabilities sequence_log_probabilities(const model::Transformer& model,
                                                    const Batch& batch, const model::Pass& pass);

// Returns the number of labels of each text: f64 [N], to divide `sums` by.
Tensor label_counts(const Batch& batch);

}  // namespace fovea::train
