#pragma once

#include <string>

#include "metrics/predictions.h"
#include "model/transformer.h"

namespace fovea {

// The data, objective and metrics of a run. The core (Stepper, Trainer) updates weights, writes
// snapshots and logs; it does not depend on data or loss.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  // Sets `trainable` of the model's parameters. By default, their roles determine it.
  virtual void choose_trainable(Transformer&) const {}

  // Adds the gradients of step `step`, which counts from 0, to the trainable parameters.
  struct StepLoss {
    double loss = 0;
    int64_t tokens = 0;  // number of tokens that were read, without padding
  };
  virtual StepLoss backward(const Transformer& model, int64_t step) const = 0;

  // Returns the first tensor of a step with NaN or infinity, or empty. Called while the gradients
  // of that step exist. The default checks weights and gradients.
  virtual std::string first_bad_tensor(Transformer& model, int64_t step) const;

  virtual double steps_per_epoch() const = 0;

  // How the held-out part is evaluated, whether there is one, and a model's predictions for it. By
  // default, there is none.
  virtual EvaluationTask evaluation() const { return {}; }
  virtual bool evaluates() const { return false; }
  virtual Predictions predict(const Transformer&) const { return {}; }
  // Whether the weights before the first step are evaluated too.
  virtual bool evaluates_start() const { return false; }

  // Returns a sample that the model generates after the given number of steps; empty = none.
  virtual std::string sample(const Transformer&, int64_t) const { return {}; }

  // Writes the files that do not change during the run, before the first step.
  virtual void write_fixed_files(const std::string&) const {}
  // Writes the model and its files into an existing folder.
  virtual void write_model(const std::string& folder, Transformer& model) const = 0;
};

// Records the first of the given tensors that contains NaN or infinity.
class BadTensorSearch {
 public:
  void look(const std::string& name, const Tensor& value);
  void weights(Transformer& model);
  void gradients(Transformer& model);
  const std::string& found() const { return found_; }  // NAME (n of m); empty = none

 private:
  std::string found_;
};

}  // namespace fovea
