#pragma once

#include <memory>
#include <optional>

#include "checkpoint/snapshot.h"
#include "train/task.h"

namespace fovea {

// Everything that a run needs before its first step.
struct Job {
  TrainOptions options;
  Spec spec;  // validated
  DType compute = DType::f32;
  std::optional<Tokenizer> tokenizer, target_tokenizer;  // of what is read and written
  Origin origin;                                         // how the model is saved
  bool new_head = false;  // instead of the checkpoint's that it starts from
  std::unique_ptr<TrainingTask> task;
  std::unique_ptr<Examples> examples;
  std::optional<Snapshot> snapshot;  // to resume from
  Transformer model;                 // with its weights
  TrainPlan plan;
};

// Checks every option and the data and builds the job; with `read_only` nothing is written
// anywhere. `reading` is told how far long texts are read; ReadingStopped if it ends that. Errors
// name the option or the file; OutOfMemory if the plan needs more than there is.
Job prepare(const Spec& spec, const TrainOptions& options, bool read_only, const Say& say,
            const std::function<bool(double fraction)>& reading = {});

// What to say where the snapshot comes from CPUs that compute other bits (numeric_class); else
// empty.
std::string change_of_class(const Job& job);

}  // namespace fovea
