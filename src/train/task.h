#pragma once

#include <string>

#include "metrics/predictions.h"
#include "model/transformer.h"

namespace fovea {

// What a run trains: its data, its objective and its figures. The core (Stepper, Trainer) updates
// weights, writes snapshots and logs; it knows no data and no loss.
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;

  // Sets `trainable` of the model's parameters. The default keeps what their roles decide.
  virtual void choose_trainable(Transformer&) const {}

  // Adds the gradients of step `step`, which counts from 0, to the trainable parameters.
  struct StepLoss {
    double loss = 0;
    int64_t tokens = 0;  // that were read, without padding
  };
  virtual StepLoss backward(const Transformer& model, int64_t step) const = 0;

  // The first tensor of a step that holds NaN or infinity, or empty. Called with the gradients of
  // that step present. The default looks at weights and gradients.
  virtual std::string first_bad_tensor(Transformer& model, int64_t step) const;

  virtual double steps_per_epoch() const = 0;

  // How the held-out part is evaluated, and what a model predicts for it. The default: nothing is
  // held out.
  virtual EvaluationTask evaluation() const { return {}; }
  virtual bool evaluates() const { return false; }
  virtual Predictions predict(const Transformer&) const { return {}; }
  // Whether the weights before the first step are evaluated too.
  virtual bool evaluates_start() const { return false; }

  // What the model generates after `step` steps; empty = it generates nothing.
  virtual std::string sample(const Transformer&, int64_t) const { return {}; }

  // Writes what does not change in the run, before the first step.
  virtual void write_fixed_files(const std::string&) const {}
  // Writes the model and all that belongs to it into an existing folder.
  virtual void write_model(const std::string& folder, Transformer& model) const = 0;
};

// Remembers the first of the tensors it is given that holds NaN or infinity.
class BadTensorSearch {
 public:
  void look(const std::string& name, const Tensor& value);
  void weights(Transformer& model);
  void gradients(Transformer& model);
  const std::string& found() const { return found_; }  // "NAME (n of m)", or empty

 private:
  std::string found_;
};

}  // namespace fovea
