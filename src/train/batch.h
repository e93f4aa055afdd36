#pragma once

#include <vector>

#include "model/transformer.h"
#include "ops/units.h"

namespace fovea {

// What one forward pass reads, and what it should say.
struct Batch {
  // Of the encoder and of the decoder; absent where the model has no such stack.
  Sequence source, target;
  // Where the tokens of each row are; the rest is padding. Empty = no padding.
  std::vector<Interval> source_valid, target_valid;
  // i32, one for each output of the head: [B, T] of tokens, [B] of whole sequences; below 0 =
  // nothing is asked.
  Tensor labels;
  int64_t asked = 0;   // labels that are not below 0
  int64_t tokens = 0;  // that are read, without padding
  // Sequences of equal length of which each is a unit, as Units in kernels.h has it; 0 = lengths
  // differ from pass to pass, and the pass is a unit as a whole.
  int64_t units = 0;
};

// The head's outputs for the rows where something is asked, and their labels: the outputs of a
// vocabulary are most of a small model's work, so no others are computed.
// logits f32 [rows, outputs], labels i32 [rows]; shapes as the head's where all rows count.
struct Answers {
  Tensor logits, labels;
  RowUnits units;  // of these rows
};
Answers answers(const Transformer& model, const Batch& batch, Pass pass);

// The sum over the asked labels of -log probability, over `divisor`: f64 [1].
// With the side losses of the layers, such as the balance of experts, where the pass trains.
Tensor label_loss(const Transformer& model, const Batch& batch, const Pass& pass, double divisor,
                  float smoothing = 0);

}  // namespace fovea
