#pragma once

#include "plan/parts.h"

namespace fovea {

// Returns the bytes that a training step on `batch` sequences keeps for its backward pass, plus
// those of its largest temporary. `element`: bytes per element in the matrix products.
double activation_bytes(const Spec& validated, const Lengths& lengths, int64_t batch,
                        double element);

// Return how many elements of keys, values and recurrent states generation caches per additional
// token, and per sequence of these lengths.
double cached_per_token(const Spec& validated);
double cached(const Spec& validated, const Lengths& lengths);

}  // namespace fovea
