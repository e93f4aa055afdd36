#pragma once

#include <functional>

#include "train/examples.h"
#include "train/task.h"

namespace fovea {

// How a step of several forward passes reads its examples.
struct PassOptions {
  DType compute = DType::f32;
  int64_t accumulate = 1;  // passes in one step
  uint64_t seed = 0;       // of dropout
};

// The loss of one pass over `divisor`, which counts what all passes of the step ask for: f64 [1].
using PassLoss = std::function<Tensor(const Batch& batch, const Pass& pass, double divisor)>;

// The gradients of one step in several passes, as those of one large batch.
TrainingTask::StepLoss backward_by_passes(const Examples& examples, int64_t step,
                                          const PassOptions& options, const PassLoss& loss);

// As TrainingTask::first_bad_tensor, in the order of the computation: weights, what the layers make
// of them, gradients.
std::string first_bad_tensor_of_passes(Transformer& model, const Examples& examples, int64_t step,
                                       const PassOptions& options);

}  // namespace fovea
