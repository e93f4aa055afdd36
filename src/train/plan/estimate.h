#pragma once

#include "base/dtype.h"
#include "fovea/model/spec.h"
#include "optim/moments.h"

namespace fovea::train {

// The cost of a training step of a model, computed from the Spec.
struct Cost {
  int64_t parameters = 0;
  int64_t trained = 0;            // parameters that are trained
  int64_t tokens = 0;             // tokens of a forward pass
  double flops_per_step = 0;      // matrix products and attention; backward = 2 x forward
  uint64_t weight_bytes = 0;      // including gradients and their sums over passes
  uint64_t optimizer_bytes = 0;   // moments of the trained parameters
  uint64_t activation_bytes = 0;  // tensors kept for the backward pass, and the largest temporary
};

// Returns the number of layers that are computed again; `recompute` is that of TrainOptions.
int64_t recomputed_layers(const model::Spec& validated, int64_t recompute);

// What a run saves of the memory of a step; see TrainOptions.
struct Savings {
  int64_t recompute = 0;       // see TrainOptions
  int64_t logit_rows = 0;      // tokens of a pass whose logits are computed; 0 = all
  bool frozen_head = false;    // large logits are computed in blocks
  int64_t summed_passes = 0;   // whose gradients a tree adds; 0 = those of the step
  MomentOptions moments = {};  // of the optimiser
};

// Returns the cost of a step of `passes` forward passes, each over batch * context tokens.
Cost training_cost(const model::Spec& validated, int64_t batch, int64_t context, int64_t passes,
                   DType compute, const Savings& savings = {});

// The sizes of a model of which a part is trained: the bytes of the weights that are not, and of
// the moments of the others; all parameters, those that are trained, and the elements per token
// that adapters keep for the backward pass, unless their layers are computed again.
struct TrainedSizes {
  uint64_t frozen_bytes = 0, moment_bytes = 0;
  int64_t parameters = 0, trained = 0, kept = 0;
};
// Returns the cost if only the trained parameters have gradients and moments: the products for the
// gradients of the other weights are not computed.
Cost cost_of_part(Cost cost, const TrainedSizes& sizes, int64_t passes, DType compute,
                  const Savings& savings = {});

}  // namespace fovea::train
