#pragma once

#include "plan/estimate.h"
#include "plan/parts.h"

namespace fovea::train {

// Returns the bytes that a training step on `batch` sequences keeps for its backward pass, plus
// those of its largest temporary. `element`: bytes per element in the matrix products.
double activation_bytes(const model::Spec& validated, const Lengths& lengths, int64_t batch,
                        double element, const Savings& savings = {});

// Returns how many elements of keys and values generation caches per additional token, in a text
// that is shorter than the windows.
double cached_per_token(const model::Spec& validated);
// What generation caches, in the pages of a PagePool: elements of keys and values, and bytes of
// states and of what convolutions read, which are fp32.
struct Cached {
  double elements = 0, states = 0;
};
// Returns it for `batch` sequences of these lengths.
Cached cached(const model::Spec& validated, const Lengths& lengths, int64_t batch);

// Returns the bytes of the activations of one step of generation, which reads at most `step_tokens`
// tokens, and of the logits of `batch` texts.
double step_bytes(const model::Spec& validated, const Lengths& lengths, int64_t batch,
                  int64_t step_tokens = 512);

// Returns the bytes of a process that generates, besides its weights, its cache and its tokenizer:
// code and libraries, and the activations of one step.
double program_bytes(const model::Spec& validated, const Lengths& lengths, int64_t batch);

}  // namespace fovea::train
