#pragma once

#include <vector>

#include "model/transformer.h"
#include "ops/units.h"

namespace fovea {

// The inputs of one forward pass, and its labels.
struct Batch {
  // Inputs of the encoder and of the decoder; unset if the model has no such stack.
  Sequence source, target;
  // The tokens of each row; the rest is padding. Empty = no padding.
  std::vector<Interval> source_valid, target_valid;
  // i32, one for each output of the head: [B, T] for tokens, [B] for sequences; below 0 = no
  // prediction.
  Tensor labels;
  int64_t asked = 0;   // number of labels that are not below 0
  int64_t tokens = 0;  // number of tokens, without padding
  // The number of sequences of equal length, each of which is a unit (see Units in kernels.h); 0 =
  // lengths differ from pass to pass, and the entire pass is one unit.
  int64_t units = 0;
};

// The outputs of the head for the rows with labels, and the labels. Other outputs are not computed,
// since the outputs of a vocabulary dominate the work of a small model. logits f32 [rows, outputs],
// labels i32 [rows]; if all rows have labels, in the shapes of the head.
struct Answers {
  Tensor logits, labels;
  RowUnits units;  // units of these rows
};
Answers answers(const Transformer& model, const Batch& batch, Pass pass);

// Returns the sum of the negative log-likelihoods of the labels, divided by `divisor`: f64 [1].
// Includes the side losses of the layers, such as the balance of experts, if the pass is for
// training.
Tensor label_loss(const Transformer& model, const Batch& batch, const Pass& pass, double divisor,
                  float smoothing = 0);

}  // namespace fovea
