#pragma once

// Gradient caching (Gao et al. 2021, arXiv:2101.06983): the loss of all vectors of a step gives the
// gradient of each. Then the texts pass through the model again, a few at a time, to propagate
// these gradients. Memory therefore does not limit the number of texts in a step.

#include <functional>
#include <vector>

#include "loop/step_sharing.h"
#include "tensor/tensor.h"

namespace fovea::train {

constexpr int64_t kCachedPassTokens = 2048;  // maximum tokens per pass, including padding

struct CachedPass {
  double cost;                      // its tokens, including padding
  std::function<Tensor()> product;  // computes a number whose gradient is that of the loss
};
// Adds the gradients of the passes by the tree of PassGradients. With `sharing`, which may be null,
// the processes of a job share them.
void pass_gradients(const std::vector<CachedPass>& passes, StepSharing* sharing);

}  // namespace fovea::train
