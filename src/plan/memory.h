#pragma once

#include "plan/parts.h"

namespace fovea {

// What a training step on `batch` sequences keeps for its backward pass, and the largest that comes
// and goes. `element`: bytes of a number of the matrix products.
double activation_bytes(const Spec& validated, const Lengths& lengths, int64_t batch,
                        double element);

// Numbers that generating keeps of one more token, and of a sequence of these lengths.
double cached_per_token(const Spec& validated);
double cached(const Spec& validated, const Lengths& lengths);

}  // namespace fovea
