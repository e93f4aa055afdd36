#pragma once

#include <chrono>
#include <functional>

#include "train/job.h"
#include "train/optimizer.h"
#include "train/record.h"
#include "train/weight_average.h"

namespace fovea {

// One optimiser step of a model on given samples; what bench times and the trainer repeats.
class Stepper {
 public:
  Stepper(Transformer& model, const TrainOptions& options, DType compute)
      : model_(model), options_(options), compute_(compute), optimizer(model, options) {}

  // The loss is the mean over the step's tokens; if loss or gradient is not finite, nothing is
  // updated.
  struct Outcome {
    double loss = 0, gradient_norm = 0, learning_rate = 0;
    int64_t tokens = 0;      // that were read
    std::string bad_tensor;  // the first tensor with a number that is none; empty = all is well
  };
  Outcome operator()(const Examples& examples, int64_t step);

 private:
  std::vector<Batch> batches_of(const Examples& examples, int64_t step) const;
  double accumulate(const std::vector<Batch>& batches, int64_t step);
  std::string first_bad_tensor(const std::vector<Batch>& batches, int64_t step) const;
  // The n-th pass of a step.
  Pass training_pass(const Batch& batch, int64_t step, int64_t n) const;

  Transformer& model_;
  const TrainOptions& options_;
  DType compute_;

 public:
  Optimizer optimizer;
};

// The loop: steps, evaluations, samples, snapshots.
class Trainer {
 public:
  Trainer(Job& job, SnapshotFolder& folder,
          const std::function<bool(const TrainProgress&)>& progress);
  TrainResult run();

 private:
  void resume();
  void evaluate();
  struct Measured {
    double loss;
    TrainingTask::Figures figures;
  };
  Measured measure(Transformer& model) const;
  double merit(const Measured& measured) const;  // the more the better
  void write_sample();
  void save();
  void write_model();
  void guard(const Stepper::Outcome& outcome);
  void require_finite() const;
  Transformer& judged();  // what is evaluated and written
  std::string last_good() const;
  bool due(int64_t every) const { return every > 0 && progress_.step % every == 0; }

  Job& job_;
  const TrainOptions& options_;
  SnapshotFolder& folder_;
  const std::function<bool(const TrainProgress&)>& report_;
  Stepper stepper_;
  std::optional<WeightAverage> average_;
  Record record_;
  TrainProgress progress_;
  int64_t stale_ = 0;  // evaluations since the best one
  int64_t bad_in_row_ = 0;
  int64_t saved_step_ = -1;
};

}  // namespace fovea
