#pragma once

#include <functional>

#include "loop/examples.h"
#include "loop/task.h"
#include "optim/schedule.h"

namespace fovea::train {

class StepSharing;

// How a step is divided into forward passes.
struct PassOptions {
  DType compute = DType::f32;
  Growth passes;                   // per step
  uint64_t seed = 0;               // seed of dropout
  int64_t recompute = 0;           // see TrainOptions
  Growth window = {};              // of attention; see Pass::window
  bool whole_passes = false;       // processes share whole passes: their rows depend on one another
  StepSharing* sharing = nullptr;  // of the processes that share the step; null = this one alone
};

// Returns the sum of the losses of one pass, divided by `divisor`, the number of predictions in all
// passes of the step: f64 [1].
using PassLoss = std::function<Tensor(const Batch& batch, const model::Pass& pass, double divisor)>;

// Computes the gradients of one step in options.passes. If batches have equal lengths, the bits do
// not depend on how the units of the step are divided into passes.
TrainingTask::StepLoss backward_by_passes(const Examples& examples, int64_t step,
                                          const PassOptions& options, const PassLoss& loss);

// Like TrainingTask::first_bad_tensor; checks the tensors in the order of the computation: weights,
// activations, gradients.
std::string first_bad_tensor_of_passes(model::Transformer& model, const Examples& examples,
                                       int64_t step, const PassOptions& options);

}  // namespace fovea::train
