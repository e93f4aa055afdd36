#pragma once

#include "fovea/train/train.h"
#include "loop/step_sharing.h"
#include "loop/task.h"
#include "optim/optimizer.h"
#include "optim/schedule.h"

namespace fovea::train {

// compute: of the passes, f32 or bf16; Muon multiplies in it too.
OptimizerOptions optimizer_options(const TrainOptions& options, DType compute);
RateSchedule rate_schedule(const TrainOptions& options);

// Takes optimiser steps of a model on a task, one at a time. The trainer and bench use it.
class Stepper {
 public:
  // The model and the task must outlive the stepper. With options.ranks, they take steps together.
  Stepper(model::Transformer& model, TrainingTask& task, const TrainOptions& options,
          DType compute);

  struct Outcome {
    double loss = 0, gradient_norm = 0, learning_rate = 0;
    int64_t tokens = 0;                // number of tokens that were read
    infer::MetricValues metrics = {};  // see TrainingTask::StepLoss
    std::string bad_tensor;            // see TrainingTask::first_bad_tensor; empty = all are finite
  };
  // Takes step `step`, which counts from 0. If the loss or a gradient is not finite, no weight is
  // updated.
  Outcome operator()(int64_t step);

 private:
  model::Transformer& model_;
  const TrainingTask& task_;
  RateSchedule schedule_;

 public:
  Optimizer optimizer;

 private:
  std::optional<StepSharing> sharing_;
};

}  // namespace fovea::train
