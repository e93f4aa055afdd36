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

// The state of a run before its first step.
struct Job {
  TrainOptions options;  // options of the core: steps, rates, evaluations, snapshots
  DType compute = DType::f32;
  std::unique_ptr<TrainingTask> task;
  std::optional<Snapshot> snapshot;  // the snapshot to resume from
  Transformer model;                 // including its weights
  // The settings that determine the results of the run, as in state.json: a resumed run must have
  // the same.
  nlohmann::ordered_json settings;
  TrainPlan plan;
};

// Loads the newest intact snapshot of options.out, if there is one, and selects the precision: the
// requested one, that of the run so far, or the fastest of the CPU.
void open_snapshot(Job& job, const Say& say);

// Sets the plan's cost and machine. Throws OutOfMemory if the run needs more than is available.
void plan_cost(Job& job, const Cost& cost);
void check_memory(Job& job);

// Throws InvalidArgument, naming each setting, if a snapshot was made with other settings and
// changes are not allowed.
void check_settings(const Job& job);

// Gives the job its model: `begin` sets job.model and job.plan.from as at the start of the run, and
// a snapshot replaces the trainable parameters.
void choose_model(Job& job, const Spec& spec, const std::function<void()>& begin);

// Returns a note if the snapshot was made on CPUs of another numeric_class, which do not compute
// the same bits; otherwise returns an empty string.
std::string change_of_class(const Job& job);

}  // namespace fovea
