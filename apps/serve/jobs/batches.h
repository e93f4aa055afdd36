#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "http/router.h"
#include "jobs/line_job.h"
#include "serve/request/request.h"
#include "tuning/batch_store.h"
#include "tuning/file_store.h"

namespace fovea::serve {

// Answers uploaded files of requests beside the server's other requests, one file at a time, as
// OpenAI's API describes it. A batch that is in progress when the server ends continues when its
// folder is used again. All functions are safe to call from any thread.
class Batches {
 public:
  static constexpr size_t kMostBatches = 1000;
  static constexpr int64_t kShare = 4;  // a batch has at most 1 / kShare of the sequences

  // `folder`: of the files and the batches, which have at most `most_bytes`. `sequences`: those
  // that the engine has at a time.
  Batches(tuning::FileStore& files, const std::string& folder, uint64_t most_bytes,
          int64_t sequences);
  ~Batches() { stop(); }
  Batches(const Batches&) = delete;
  Batches& operator=(const Batches&) = delete;

  // Begins to answer batches by the routes of `router`. `warn` receives errors of the server.
  void start(http::Router router, std::function<void(const std::string&)> warn);
  void stop();  // the engine must not end before

  // Throws FieldError if a field is invalid.
  tuning::Batch create(const BatchRequest& request);
  std::vector<tuning::Batch> all() const;  // newest first
  std::optional<tuning::Batch> find(const std::string& id) const;
  // Cancels a batch, which must exist. Throws FieldError if its status does not permit it.
  tuning::Batch cancel(const std::string& id);
  void check_unused(const std::string& file) const;  // see DeletionHooks

 private:
  void work();
  std::optional<std::string> next() const;  // the oldest unfinished batch; requires the lock
  void advance(const std::string& id);
  void validate(const tuning::Batch& batch);
  void answer(const tuning::Batch& batch);
  void finalize(const tuning::Batch& batch);
  bool halted(const std::string& id) const;  // whether no further lines are answered
  std::string path_of(const tuning::Batch& batch, const char* name) const;
  void fail(const std::string& id, std::vector<tuning::BatchError> errors);
  void give_up(const std::string& id, const std::exception& error);

  tuning::FileStore& files_;
  const std::string folder_;
  const uint64_t most_bytes_;
  const size_t lines_;  // that are answered at a time
  http::Router router_;
  std::function<void(const std::string&)> warn_;
  mutable std::mutex mutex_;  // of store_
  std::condition_variable changed_;
  tuning::BatchStore store_;
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace fovea::serve
