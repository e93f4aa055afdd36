#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>

#include "jobs/line_job.h"

namespace fovea::jobs {

// Distributes the blocks of a job among several threads, and orders their results.
class LineQueue {
 public:
  // `ahead`: maximum number of blocks that are started and not yet written. It bounds the memory.
  LineQueue(const LineJob& job, size_t ahead);

  // Returns the next block; empty at the end of the input. Waits while the limit is reached.
  std::optional<LineBlock> take();
  // Like take(), but does not wait: returns false if the limit is reached.
  bool try_take(std::optional<LineBlock>& block);
  // Adds the result of the block that starts at line `first`.
  void put(size_t first, BlockResult result);
  // Makes take(), try_take(), put(), check() and finish() throw this error.
  void fail(std::exception_ptr error);
  void check();
  // Waits until all started blocks are written, then completes the output.
  JobProgress finish();

 private:
  struct Begun {
    size_t lines;
    uint64_t bytes, hash_after;
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
  std::map<size_t, Begun> begun_;  // blocks that are not written yet, by first line
  JobProgress written_;
  uint64_t bytes_ = 0;  // of the lines that are written
  uint64_t hash_ = 0;   // hash of all lines that were read
  bool ended_ = false;
  std::exception_ptr error_;
};

// Computes blocks on this thread until there are no more, or until `stopped` returns true. Passes
// an exception to the other threads by fail().
void compute_blocks(LineQueue& queue, const std::function<BlockResult(const LineBlock&)>& compute,
                    const std::function<bool()>& stopped);

}  // namespace fovea::jobs
