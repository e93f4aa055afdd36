#pragma once

#include "fovea/train.h"
#include "train/optimizer.h"
#include "train/schedule.h"
#include "train/task.h"

namespace fovea {

OptimizerOptions optimizer_options(const TrainOptions& options);
RateSchedule rate_schedule(const TrainOptions& options);

// Takes one optimiser step of a model on a task at a time: bench measures it, and the trainer
// repeats it.
class Stepper {
 public:
  // Model and task must outlive the stepper.
  Stepper(Transformer& model, const TrainingTask& task, const TrainOptions& options);

  // If the loss or a gradient is not finite, no weight is updated.
  struct Outcome {
    double loss = 0, gradient_norm = 0, learning_rate = 0;
    int64_t tokens = 0;      // number of tokens that were read
    std::string bad_tensor;  // the first tensor with NaN or infinity; empty = none
  };
  Outcome operator()(int64_t step);

 private:
  Transformer& model_;
  const TrainingTask& task_;
  RateSchedule schedule_;

 public:
  Optimizer optimizer;
};

}  // namespace fovea
