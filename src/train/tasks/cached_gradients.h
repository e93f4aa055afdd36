#pragma once

// Gradient caching (Gao et al. 2021, arXiv:2101.06983): the loss of all vectors of a step gives the
// gradient of each. Then the texts pass through the model again, a few at a time, to propagate
// these gradients. Memory therefore does not limit the number of texts in a step.

#include <functional>
#include <vector>

#include "loop/step_sharing.h"
#include "tensor/tensor.h"
#include "transformer/transformer.h"

namespace fovea::train {

constexpr int64_t kCachedPassTokens = 512;  // maximum tokens per pass, including padding

struct CachedPass {
  double cost;                      // its tokens, including padding
  std::function<Tensor()> product;  // computes a number whose gradient is that of the loss
};

// Returns the tensors that the model trains, and `own`.
std::vector<Tensor> trained_tensors(const model::Transformer& model,
                                    const std::vector<model::NamedParameter>& own);

// Adds the gradients of the passes for the tensors `trained`, in groups, by the tree of
// PassGradients. With `sharing`, which may be null, the processes of a job share the groups.
void pass_gradients(const std::vector<CachedPass>& passes, const std::vector<Tensor>& trained,
                    StepSharing* sharing);

}  // namespace fovea::train
