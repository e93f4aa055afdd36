#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "checkpoint/snapshot.h"
#include "metrics/predictions.h"
#include "transformer/transformer.h"

namespace fovea::train {

class StepSharing;

// Thrown when ReinforcementOptions::stop ends a run while its rewards are computed.
struct RewardsStopped {};

// What a task optimises: the steps of a run, and its own parameters and state.
class TrainingObjective {
 public:
  virtual ~TrainingObjective() = default;

  // Sets `trainable` of the model's parameters. The default leaves the values that follow from
  // their roles.
  virtual void choose_trainable(model::Transformer&) const {}
  // Called once before step `first` of a run, and not for a plan.
  virtual void begin(const model::Transformer&, int64_t) {}

  // Returns parameters of the task that are trained besides those of the model. They stay at their
  // addresses; snapshots contain them, but the model's files do not.
  virtual std::vector<model::NamedParameter> own_parameters() const { return {}; }
  // Returns what a snapshot needs besides the weights and moments; restore() gets it back.
  virtual std::map<std::string, Tensor> state() const { return {}; }
  virtual void restore(const model::Snapshot&) const {}

  // Adds the gradients of step `step`, which counts from 0, to the trainable parameters.
  struct StepLoss {
    double loss = 0;
    int64_t tokens = 0;                // number of tokens that were read, without padding
    infer::MetricValues metrics = {};  // other measurements of the step
  };
  virtual StepLoss backward(const model::Transformer& model, int64_t step) const = 0;
  virtual double steps_per_epoch() const = 0;
  // From now on, backward() computes the gradients together with the other processes of the job.
  // TaskTraits::shares_steps tells whether it can.
  void share_steps(StepSharing& sharing) { sharing_ = &sharing; }

  // Returns the first tensor of a step that contains NaN or infinity, as BadTensorSearch::found()
  // does. Called while the gradients of that step exist. The default checks weights and gradients.
  virtual std::string first_bad_tensor(model::Transformer& model, int64_t step) const;

 protected:
  StepSharing* sharing_ = nullptr;  // null = this process takes steps alone
};

// The held-out part of the data.
class HeldOutPart {
 public:
  virtual ~HeldOutPart() = default;

  // Return how it is evaluated, whether there is one (by default, there is none), and a model's
  // predictions for it.
  virtual infer::EvaluationTask evaluation() const { return {}; }
  virtual bool evaluates() const { return false; }
  virtual infer::Predictions predict(const model::Transformer&) const { return {}; }
  // Sets a callback that predict() calls regularly with the fraction that it has computed.
  void watch_predictions(std::function<void(double fraction)> watch) { watch_ = std::move(watch); }

 protected:
  void predicted(double fraction) const {
    if (watch_) watch_(fraction);
  }

 private:
  std::function<void(double fraction)> watch_;
};

// The samples and the files that a run writes.
class TaskOutput {
 public:
  virtual ~TaskOutput() = default;

  // Returns whether sample() writes anything.
  virtual bool writes_samples(const model::Transformer&) const { return false; }
  // Returns a sample that the model generates after the given number of steps; empty = none.
  virtual std::string sample(const model::Transformer&, int64_t) const { return {}; }

  // Writes the files that do not change during the run, before the first step.
  virtual void write_fixed_files(const std::string&) const {}
  // Returns further files of a snapshot, by their names.
  virtual std::map<std::string, std::string> snapshot_files(model::Transformer&) const {
    return {};
  }
  // Writes the model and its files into an existing folder.
  virtual void write_model(const std::string& folder, model::Transformer& model) const = 0;
};

// How the loop treats a task.
struct TaskTraits {
  bool measures_steps = true;    // steps may be taken on a copy of the model, to measure their time
  bool evaluates_start = false;  // the weights before the first step are evaluated too
  // The losses of a run that learns do not rise. Those of reinforcement depend on the answers, and
  // those of replaced tokens on the generator.
  bool losses_fall = true;
  bool repeats = true;            // later epochs have the inputs of the first one
  bool reads_text = true;         // the model reads or writes text; if not, no tokenizer is saved
  bool shares_steps = false;      // the processes of a job can share a step
  bool limits_evaluation = true;  // an evaluation may read a part of the held-out data
};

// The data, objective and metrics of a run. The core (Stepper, Trainer) updates weights, writes
// snapshots and logs; it does not depend on data or loss.
class TrainingTask : public TrainingObjective, public HeldOutPart, public TaskOutput {
 public:
  explicit TrainingTask(const TaskTraits& traits = {}) : traits_(traits) {}
  const TaskTraits& traits() const { return traits_; }

 protected:
  TaskTraits traits_;
};

// Records the first of the given tensors that contains NaN or infinity.
class BadTensorSearch {
 public:
  void look(const std::string& name, const Tensor& value);
  void weights(model::Transformer& model);
  void gradients(model::Transformer& model);
  // Returns "NAME (n of m)" if n of the tensor's m elements are not finite; empty = none was found.
  const std::string& found() const { return found_; }

 private:
  std::string found_;
};

}  // namespace fovea::train
