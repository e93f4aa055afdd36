#pragma once

#include <chrono>
#include <functional>

#include "log/record.h"
#include "loop/divergence.h"
#include "loop/job.h"
#include "loop/leader.h"
#include "loop/pauses.h"
#include "loop/stepper.h"
#include "optim/weight_average.h"

namespace fovea::train {

// The training loop: steps, evaluations, samples and snapshots.
class Trainer {
 public:
  Trainer(Job& job, model::SnapshotFolder* folder,
          const std::function<bool(const TrainProgress&)>& progress,
          const std::function<void(Pause, double)>& pausing);
  TrainResult run();

 private:
  // Metrics of the held-out part.
  struct Measured {
    std::optional<double> loss;
    infer::MetricValues metrics = {};  // metrics other than the loss
    double bits_per_byte = 0;          // 0 = not applicable
    std::optional<infer::LabelReport> labels = {};
  };

  bool leads() const { return train::leads(options_.ranks); }
  void resume();
  bool take_steps(TrainResult& result);  // returns whether the run may go on
  void clear_step();
  Stepper::Outcome step();
  void evaluate();
  void evaluate_start();
  void keep_if_best(model::Transformer& model);
  Measured measure(const model::Transformer& model) const;
  Measured metrics_of(const model::Transformer& model) const;
  bool goes_on() const;
  void does(Activity activity) const;
  double merit(const Measured& measured) const;  // higher is better
  void save();
  void write_snapshot(std::map<std::string, Tensor> tensors);
  void write_model(model::Transformer& model);
  void take(const Stepper::Outcome& outcome, double seconds);
  void guard(const Stepper::Outcome& outcome);
  void watch();
  void warn(const std::string& text);
  std::string kept_start() const;
  void require_finite() const;
  model::Transformer& evaluated_weights();  // the weights that are evaluated and written
  std::string last_good() const;
  void pause(Pause kind, const std::function<void()>& work);
  void take_sample();
  void set_time_left(double step_seconds);
  // Whether all ranks have the same weights after this step.
  bool synchronised() const { return stepper_.synchronises(progress_.step); }
  bool due(int64_t every) const;

  Job& job_;
  const TrainOptions& options_;
  model::SnapshotFolder* folder_;  // null on ranks that do not lead
  const std::function<bool(const TrainProgress&)>& report_;
  const std::function<void(Pause, double)>& pausing_;
  Stepper stepper_;
  std::optional<WeightAverage> average_;
  std::optional<Record> record_;  // of the leader
  PauseTimes pauses_;
  TrainProgress progress_;
  const infer::EvaluationTask evaluation_;
  infer::MetricValues start_metrics_;  // metrics before the first step
  std::optional<double> start_loss_;   // held-out loss before the first step
  std::optional<Measured> best_;
  int64_t best_step_ = -1;  // the step of `best_`; -1 = unknown
  DivergenceGuard divergence_;
  RewardWatch rewards_;
  int64_t stale_ = 0;  // evaluations since the best one
  int64_t bad_in_row_ = 0;
  int64_t saved_step_ = -1;
  std::chrono::steady_clock::time_point start_;
  double stepping_ = 0;  // seconds in steps
};

}  // namespace fovea::train
