#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuning/child_process.h"
#include "tuning/job_events.h"
#include "tuning/job_store.h"
#include "tuning/tuning_command.h"

namespace fovea::tuning {

// How jobs are run.
struct RunnerOptions {
  std::string folder;  // absolute; of the files and the jobs
  std::vector<BaseModel> bases;
  std::vector<BaseModel> judges = {};     // models that give rewards
  uint64_t most_bytes = 0;                // of all files in the folder
  int threads = 1;                        // of a training run
  std::vector<std::string> program = {};  // starts `fovea`: with its arguments before the verb
};

// Returns the bytes of all files in a folder and its subfolders.
uint64_t bytes_below(const std::string& folder);

// Runs the jobs of a store, each as a child process: one at a time is validated, and one is
// trained. advance() must be called repeatedly, always on the same thread, since the child
// processes end with it.
class JobRunner {
 public:
  JobRunner(const RunnerOptions& options, JobStore& jobs) : options_(options), jobs_(jobs) {}

  // Takes note of what the child processes did, and starts waiting jobs if `starts` is true.
  // Returns the ids of jobs whose training ended successfully; they are still running until the
  // caller changes them.
  std::vector<std::string> advance(bool starts);
  bool idle() const { return !validation_.child && !training_.child; }

  // Asks the child process of a job to stop, and kills it after `grace`. Its exit code has no
  // effect.
  void stop(const std::string& job, std::chrono::seconds grace);
  void stop_all(std::chrono::seconds grace);

  // Marks jobs of models that are not served as failed; the status of the others becomes queued if
  // they were running when the last server ended. Call it once, at the start.
  void adopt();
  const BaseModel* base_of(const Job& job) const;  // null if it is not served
  uint64_t used_bytes() const;                     // by all files of the folder

 private:
  void adopt(Job& job);
  // A child process and its job.
  struct Run {
    std::string job = {};
    std::unique_ptr<ChildProcess> child = {};
    std::unique_ptr<TrainingLog> log = {};
    bool stopping = false;
    std::chrono::steady_clock::time_point killed_at = {};
  };

  void start_next(Run& run, JobStatus status);
  void start(Run& run, Job& job, const std::vector<std::string>& arguments, const char* output);
  void start_training(Job& job);
  void write_rewards(const Job& job) const;
  std::optional<int> poll(Run& run);
  void end_validation(Job& job, int code);
  void take_plan(Job& job);
  void read_progress(Job& job);  // adds new events and checkpoints
  void fail(Job& job, int code, const char* errors);
  std::string read(const Job& job, const char* name) const;
  void stop(Run& run, std::chrono::seconds grace);

  const RunnerOptions& options_;
  JobStore& jobs_;
  Run validation_, training_;
};

}  // namespace fovea::tuning
