#pragma once

#include "base/dtype.h"
#include "fovea/spec.h"

namespace fovea {

// The cost of a training step of a model, computed from the Spec.
struct Cost {
  int64_t parameters = 0;
  int64_t trained = 0;            // parameters that are trained
  int64_t tokens = 0;             // tokens of a forward pass
  double flops_per_step = 0;      // matrix products and attention; backward = 2 x forward
  uint64_t weight_bytes = 0;      // including gradients and their sums over passes
  uint64_t optimizer_bytes = 0;   // two moments
  uint64_t activation_bytes = 0;  // tensors kept for the backward pass, and the largest temporary
};

// Returns the cost of a step of `passes` forward passes, each over batch * context tokens.
Cost training_cost(const Spec& validated, int64_t batch, int64_t context, int64_t passes,
                   DType compute);

// The sizes of a model with adapters: the bytes of its own weights, all parameters, those that are
// trained, and the elements per token that the adapters keep for the backward pass.
struct AdaptedSizes {
  uint64_t base_bytes = 0;
  int64_t parameters = 0, trained = 0, kept = 0;
};
// Returns the cost if only the trained parameters have gradients and moments. The products for the
// gradients of the other weights, a third of the operations, are not computed.
Cost adapted_cost(Cost cost, const AdaptedSizes& sizes, int64_t passes, DType compute);

}  // namespace fovea
