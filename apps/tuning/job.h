#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ordered_json.h"

namespace fovea::tuning {

using Json = nlohmann::ordered_json;

// The states of OpenAI's API. A job begins in validating_files; succeeded, failed and cancelled are
// final.
enum class JobStatus { validating_files, queued, running, paused, succeeded, failed, cancelled };
const char* name_of(JobStatus status);
bool is_final(JobStatus status);
// Returns whether a job may change from one state to the other.
bool may_become(JobStatus from, JobStatus to);

// The methods of OpenAI's API: fine-tuning on chats, on preferences, and on rewards of answers that
// the model writes.
enum class JobMethod { supervised, dpo, reinforcement };
const char* name_of(JobMethod method);

// A part of the reward of an answer: a check of `fovea train --reward`, a JSON Schema, or the
// output of a served model; the others are empty.
struct JobReward {
  double weight = 1;
  std::string check = {};  // "numeric:answer"
  Json schema = {};
  std::string model = {};  // a name in the API
};

// What a client asks for. Unset hyperparameters are chosen by the server ("auto").
struct JobRequest {
  std::string model;                           // the name of a served model
  std::string training_file, validation_file;  // ids; an empty validation file = none
  std::string suffix;                          // part of the new model's name
  std::optional<int64_t> epochs, batch;
  std::optional<double> rate_multiplier;
  std::optional<int64_t> seed;
  Json metadata;  // returned to the client
  JobMethod method = JobMethod::supervised;
  std::optional<double> beta = {};  // dpo
  // reinforcement: a multiple of the usual number of answers to a prompt; steps between
  // evaluations; prompts in an evaluation; most tokens of an answer
  std::optional<double> compute_multiplier = {};
  std::optional<int64_t> evaluation_interval = {}, evaluation_samples = {}, answer_tokens = {};
  std::vector<JobReward> rewards = {};
  Json grader = {};  // from which `rewards` follow; returned to the client
};

// A failure: `parameter` is the field of the request that caused it, or empty.
struct JobError {
  std::string code, message, parameter;
};

struct Checkpoint {
  std::string id;
  int64_t step = 0;
  int64_t created = 0;
  std::optional<double> training_loss, validation_loss;

  std::string name_in(const std::string& result) const;  // "RESULT:ckpt-step-N"
};

struct Job {
  std::string id;        // generated: "ftjob-" and 24 hexadecimal digits
  int64_t number = 0;    // in the order of creation
  int64_t created = 0;   // seconds since 1970, as are `finished` and those of checkpoints
  int64_t finished = 0;  // 0 = not yet
  JobStatus status = JobStatus::validating_files;
  JobRequest request;
  int64_t epochs = 0, batch = 0, seed = 0;  // those of the request, or the server's choice
  double rate_multiplier = 0;
  // Of the plan, which is made while the files are validated: steps, and bytes of the adapter with
  // its snapshots.
  int64_t steps = 0, disk_bytes = 0;
  int64_t trained_tokens = 0;
  std::vector<Checkpoint> checkpoints;  // oldest first
  std::optional<JobError> error;

  // "ft:MODEL:SUFFIX:ID", the name of the result.
  std::string result_name() const;
  // Steps between evaluations, each of which ends with a checkpoint.
  int64_t checkpoint_interval() const {
    return request.evaluation_interval.value_or(steps_per_epoch());
  }
  int64_t steps_per_epoch() const { return (steps + epochs - 1) / epochs; }
};

// Convert a job to the text of its file and back. `name` is the file's name in errors. Throws
// BadFile if the text is damaged.
std::string write_job(const Job& job);
Job read_job(std::string_view text, const std::string& name);

}  // namespace fovea::tuning
