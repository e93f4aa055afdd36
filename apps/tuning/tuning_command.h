#pragma once

#include <string>
#include <vector>

#include "tuning/job.h"

namespace fovea::tuning {

// A served model that jobs may fine-tune.
struct BaseModel {
  std::string name;           // in the API
  std::string path;           // absolute, of a directory or a .gguf file
  std::string chat_template;  // absolute path of a template instead of the model's; empty = none
};

// The snapshots of a job that are kept. There is one at each Job::checkpoint_interval().
constexpr int64_t kSnapshots = 3;

// What `fovea train --config` reads for a job of the method reinforcement: its rewards.
constexpr const char* kRewards = "rewards.json";
// The file of the schema of a job's n-th reward.
std::string schema_name(size_t n);
// Returns the contents of kRewards. Paths are relative to the folder of the jobs; `judges` are the
// models that rewards may name.
std::string rewards_config(const Job& job, const std::vector<BaseModel>& judges);

// Return the arguments of `fovea` that validate the files of a job and plan its training, or train
// it. All paths are relative to the folder of the jobs, except those of the base. Nothing in them
// is text of a request: files are named by generated ids, and the rest are numbers. Rewards are in
// a file (kRewards), which names no program and no path of the request.
std::vector<std::string> validation_arguments(const Job& job, const BaseModel& base, int threads);
std::vector<std::string> training_arguments(const Job& job, const BaseModel& base, int threads);

// The path of an uploaded file, relative to the folder of the jobs.
std::string path_of_file(const std::string& id);

// Returns the failure of a child process that ended with `code`. `errors` is what it wrote to
// standard error; the paths in its message, among them those of `models`, are replaced by ids and
// names.
JobError failure_of(const Job& job, const std::vector<BaseModel>& models, int code,
                    const std::string& errors);

}  // namespace fovea::tuning
