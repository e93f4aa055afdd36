#pragma once

#include "base/dtype.h"
#include "fovea/spec.h"

namespace fovea {

// The cost of a training step of a model, computed from the Spec.
struct Cost {
  int64_t parameters = 0;
  double flops_per_step = 0;      // matrix products and attention; backward = 2 x forward
  uint64_t weight_bytes = 0;      // including gradients and their sums over passes
  uint64_t optimizer_bytes = 0;   // two moments
  uint64_t activation_bytes = 0;  // tensors kept for the backward pass, and the largest temporary
};

// Returns the cost of a step of `passes` forward passes, each over batch * context tokens.
Cost training_cost(const Spec& validated, int64_t batch, int64_t context, int64_t passes,
                   DType compute);

}  // namespace fovea
