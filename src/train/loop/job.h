#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "checkpoint/family.h"
#include "checkpoint/snapshot.h"
#include "fovea/train/train.h"
#include "loop/task.h"
#include "plan/estimate.h"

namespace fovea::model {
struct Adapter;
}

namespace fovea::train {

using Say = std::function<void(std::string)>;

// The state of a run before its first step.
struct Job {
  TrainOptions options;  // options of the core: steps, rates, evaluations, snapshots
  DType compute = DType::f32;
  const model::Family* family = nullptr;  // names the modules that have adapters
  uint64_t base_bytes = 0;                // memory of the weights to which adapters are added
  std::string adapter;  // directory of the adapter at the start; empty = new adapters
  std::shared_ptr<const model::Adapter> start;  // this adapter
  uint64_t teacher_hash = 0;                    // of the teacher's files; 0 = no teacher
  std::unique_ptr<TrainingTask> task;
  std::optional<model::Snapshot> snapshot;  // the snapshot to resume from
  double evaluated_part = 1;                // of the held-out data, that an evaluation reads
  model::Transformer model;                 // including its weights
  model::DropoutSpec dropout;  // of the run; the model's Spec keeps that of its checkpoint
  // The settings that determine the results of the run, as in state.json. A resumed run must have
  // the same settings.
  nlohmann::ordered_json settings;
  TrainPlan plan;
};

// Loads the newest intact snapshot of options.out, if there is one, and selects the precision: the
// requested one, else that of the snapshot, else bf16 if the CPU multiplies it natively, else fp32.
void open_snapshot(Job& job, const Say& say);

// The sequences of a forward pass, and the tokens of each.
struct PassSize {
  int64_t batch = 0, length = 0;
  int64_t outputs = 0;        // tokens with labels; 0 = all
  bool varies = false;        // other passes have other sizes
  int64_t summed_passes = 0;  // see Savings
};
// Sets the plan's cost and machine, and calls check_memory(). job.task, job.family and
// job.base_bytes must be set.
void plan_cost(Job& job, const model::Spec& spec, const PassSize& size);
// Sets the plan's memory. Throws OutOfMemory if the run needs more than is available.
void check_memory(Job& job);

// Return an integer, or a number, among the settings of the snapshot; `missing` if it lacks one.
int64_t setting_of_snapshot(const Job& job, const std::string& name, int64_t missing);
double number_of_snapshot(const Job& job, const std::string& name, double missing);
// Returns whether the weights before the first step are evaluated: those of a model that exists may
// be better than all later ones.
bool evaluates_start(const Job& job);
// Returns whether the run of the snapshot ended before its last step, since the evaluations no
// longer improved.
bool ended_early(const Job& job);
// Returns the settings whose values differ, each as "spec.width was 16 and is 32". A setting that
// only `now` has is no change: an older version of fovea wrote `before`.
std::vector<std::string> changes(const nlohmann::json& before, const nlohmann::json& now);
// Throws InvalidArgument, naming each changed setting, if the snapshot has different settings and
// options.allow_change is false. More steps than before are no change; calls `say` with a note.
void check_settings(const Job& job, const Say& say);

// Sets which parameters of a model are trained, as the task and the options require, and adds new
// adapters if they request any. Throws InvalidArgument, naming the option, if they do not fit the
// model.
void choose_trained(const Job& job, model::Transformer& model);

// Sets the job's model. `begin` sets job.model and job.plan.from as at the start of the run; it is
// not called if the snapshot has all parameters. A snapshot replaces the trainable parameters.
void choose_model(Job& job, const model::Spec& spec, const std::function<void()>& begin);

// Returns a note if the snapshot was made on a CPU of a different numeric_class, which does not
// compute the same bits; otherwise returns an empty string.
std::string change_of_class(const Job& job);

}  // namespace fovea::train
