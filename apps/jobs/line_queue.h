#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>

#include "jobs/line_job.h"

namespace fovea::jobs {

// Hands out the blocks of a job and puts their results into order, for several threads.
class LineQueue {
 public:
  // `ahead`: blocks that may be handed out beyond the first that is not back. It bounds the memory.
  LineQueue(const LineJob& job, size_t ahead);

  // The next block; nothing at the end. Waits until there is room.
  std::optional<LineBlock> take();
  // The same without waiting: false where there is no room.
  bool try_take(std::optional<LineBlock>& block);
  // The result of the block whose first line this is.
  void put(size_t first, BlockResult result);
  // Lets every other call throw this.
  void fail(std::exception_ptr error);
  void check();
  // Once all results are there: writes the end.
  JobProgress finish();

 private:
  struct Begun {
    size_t lines;
    uint64_t hash_after;
    std::optional<BlockResult> result;
  };

  void skip_finished();
  void rethrow() const;
  bool has_room() const { return begun_.size() < ahead_ || ended_; }
  std::optional<LineBlock> read();
  void write(const Begun& block);

  const LineJob& job_;
  size_t ahead_;
  BlockReader reader_;
  std::unique_ptr<JobOutput> output_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<size_t, Begun> begun_;  // not written yet, by their first lines
  JobProgress written_;
  uint64_t hash_ = 0;  // of all lines that were read
  bool ended_ = false;
  std::exception_ptr error_;
};

}  // namespace fovea::jobs
