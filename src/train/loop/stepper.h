#pragma once

#include <map>
#include <optional>
#include <string>

#include "checkpoint/snapshot.h"
#include "fovea/train/train.h"
#include "loop/local_steps.h"
#include "loop/shards.h"
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

  // Returns the last step up to this number after which all ranks had the same weights.
  int64_t last_synchronised(int64_t steps) const;
  bool synchronises(int64_t steps) const { return last_synchronised(steps) == steps; }

  // Returns the weights and the moments that this process updates.
  std::map<std::string, Tensor> own_state() const { return optimizer_.state(); }
  // Returns those of a snapshot; on several ranks, collective, and complete on rank 0 only.
  std::map<std::string, Tensor> state();
  // Sets those of this process from a snapshot.
  void restore(const model::Snapshot& snapshot);
  void clear_gradients() { optimizer_.clear_gradients(); }

 private:
  model::Transformer& model_;
  const TrainingTask& task_;
  RateSchedule schedule_;
  int64_t sync_every_;
  std::optional<Shards> shards_;
  Optimizer optimizer_;
  std::optional<StepSharing> sharing_;
  std::optional<LocalSteps> local_;
};

}  // namespace fovea::train
