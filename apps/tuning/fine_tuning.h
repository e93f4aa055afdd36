#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "tuning/file_store.h"
#include "tuning/job.h"
#include "tuning/job_runner.h"
#include "tuning/job_store.h"

namespace fovea::tuning {

// The result of a job, or a checkpoint of it: an adapter of a base model.
struct TunedModel {
  std::string name, base;  // names in the API
  std::string folder;      // of the adapter, in PEFT's format
};

// Fine-tunes served models on uploaded chats, as OpenAI's API describes it: each job trains a LoRA
// adapter in a child process `fovea train`. The folder contains
//   files/FILE.jsonl, files/FILE.json                 the uploads
//   jobs/JOB/job.json, jobs/JOB/events.jsonl          the jobs
//   jobs/JOB/model/                                   the output of `fovea train`
// Jobs that were running when the server ended continue from their last snapshot. All functions are
// safe to call from any thread.
class FineTuning {
 public:
  static constexpr size_t kMostJobs = 1000, kMostUnfinished = 100;

  // Locks and reads the folder, which is created if it does not exist. Throws Failed if another
  // process uses it, and BadFile if a record in it is damaged.
  explicit FineTuning(RunnerOptions options);
  ~FineTuning() { stop(std::chrono::seconds(0)); }
  FineTuning(const FineTuning&) = delete;
  FineTuning& operator=(const FineTuning&) = delete;

  // Serves a model. Called once for each result and for each of its checkpoints: of earlier jobs by
  // start(), of a new job before it is reported as succeeded. If it throws an Error, the job
  // succeeds with a warning.
  using Serve = std::function<void(const TunedModel&)>;
  using Warn = std::function<void(const std::string&)>;
  // Begins to run jobs.
  void start(Serve serve, Warn warn);
  // Deletes the files of a result or of a checkpoint. Returns false if no job has one of this name.
  bool remove_model(const std::string& name);
  // Asks the running job to save a snapshot, and kills it after `grace`. It continues when the
  // folder is used again.
  void stop(std::chrono::seconds grace);

  const std::string& folder() const { return options_.folder; }
  const FileStore& files() const { return files_; }
  FileStore& files() { return files_; }
  // Throws FieldError if the file is invalid (FileStore::add) or does not fit into the folder.
  StoredFile upload(const std::string& label, std::string_view content,
                    const std::string& purpose = "fine-tune");
  // Throws FieldError if an unfinished job uses the file. Does nothing if it does not exist.
  void remove_file(const std::string& id);

  // Throws FieldError if a field of the request is invalid.
  Job create(const JobRequest& request);
  std::vector<Job> jobs() const;  // newest first
  std::optional<Job> job(const std::string& id) const;
  // These functions change a job, which must exist, and return it. They throw FieldError if its
  // status does not permit the change.
  Job cancel(const std::string& id);
  Job pause(const std::string& id);
  Job resume(const std::string& id);
  std::vector<Json> events(const std::string& id) const;  // newest first
  // Returns the checkpoints whose snapshots still exist, newest first.
  std::vector<Checkpoint> checkpoints(const std::string& id) const;

 private:
  std::vector<Checkpoint> existing_checkpoints(const Job& job) const;
  void work();
  void finish(const std::vector<std::string>& trained);
  void try_to_serve(const Job& job);
  std::vector<TunedModel> models_of(const Job& job) const;
  void check_request(const JobRequest& request) const;
  void check_file(const char* field, const std::string& id) const;
  void check_rewards(const JobRequest& request) const;
  Job change(const std::string& id, JobStatus status, const std::string& event);
  void warn(const std::string& message) const;

  const RunnerOptions options_;
  DirectoryLock lock_;
  FileStore files_;
  std::mutex uploading_;      // uploads are checked and written one after the other
  mutable std::mutex mutex_;  // of the members below
  JobStore jobs_;
  JobRunner runner_;
  std::condition_variable changed_;
  bool stopping_ = false;
  std::chrono::seconds grace_{0};
  Serve serve_;
  Warn warn_;
  std::thread thread_;
};

}  // namespace fovea::tuning
