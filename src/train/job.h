#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "checkpoint/snapshot.h"
#include "fovea/train.h"
#include "plan/estimate.h"
#include "train/task.h"

namespace fovea {

using Say = std::function<void(std::string)>;

// Everything that a run needs before its first step.
struct Job {
  TrainOptions options;  // of the core: steps, rates, evaluations, snapshots
  DType compute = DType::f32;
  std::unique_ptr<TrainingTask> task;
  std::optional<Snapshot> snapshot;  // to resume from
  Transformer model;                 // with its weights
  // What decides the run's numbers, as state.json keeps it: a resumed run must have the same.
  nlohmann::ordered_json settings;
  TrainPlan plan;
};

// Loads the newest whole snapshot of options.out, if there is one, and chooses the precision: what
// was asked for, what the run began with, or what the CPU is best at.
void open_snapshot(Job& job, const Say& say);

// Fills in the plan's cost and machine. Throws OutOfMemory if the run needs more than there is.
void plan_cost(Job& job, const Cost& cost);
void check_memory(Job& job);

// Throws InvalidArgument, naming each setting, if there is a snapshot and it was made with others
// and no change is allowed.
void check_settings(const Job& job);

// Gives the job its model: `begin` sets job.model and job.plan.from as at the start of the run, and
// a snapshot replaces the trainable parameters.
void choose_model(Job& job, const Spec& spec, const std::function<void()>& begin);

// What to say where the snapshot comes from CPUs that compute other bits (numeric_class); else
// empty.
std::string change_of_class(const Job& job);

}  // namespace fovea
