#include "jobs/line_queue.h"

#include <fmt/format.h>

#include <algorithm>

#include "fovea/core/error.h"
#include "terminal/terminal.h"

namespace fovea::jobs {
namespace {

uint64_t bytes_of(const std::vector<std::string>& lines) {
  uint64_t bytes = lines.size();  // of the line breaks
  for (const std::string& line : lines) bytes += line.size();
  return bytes;
}

}  // namespace

LineQueue::LineQueue(const LineJob& job, size_t ahead)
    : job_(job),
      ahead_(ahead),
      reader_(job.files),
      output_(open_job_output(job.out, static_cast<bool>(job.beginning), job.key)),
      written_(output_->progress()) {
  if (written_.lines > 0) {
    skip_finished();
  } else {
    output_->add(job.opening, {});
  }
  if (job.report) job.report(written_, bytes_);
}

// Skips the lines that an earlier run has finished.
void LineQueue::skip_finished() {
  int64_t left = written_.lines;
  while (left > 0) {
    const auto most = std::min(static_cast<size_t>(left), job_.block_lines);
    const std::optional<LineBlock> block = reader_.next(most);
    if (!block) break;
    hash_ = hash_lines(hash_, block->lines);
    bytes_ += bytes_of(block->lines);
    left -= std::ssize(block->lines);
  }
  if (left > 0 || hash_ != written_.lines_hash)
    throw Error(ErrorKind::BadFile,
                fmt::format("{0}.part: was started with different input lines; expected the same "
                            "lines; to start again, delete {0}.part and {0}.journal",
                            job_.out));
  cli::note(fmt::format("{}.part: resumes after line {}\n", job_.out, written_.lines));
}

std::optional<LineBlock> LineQueue::take() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || has_room(); });
  return read();
}

bool LineQueue::try_take(std::optional<LineBlock>& block) {
  const std::lock_guard lock(mutex_);
  if (!error_ && !has_room()) return false;
  block = read();
  return true;
}

std::optional<LineBlock> LineQueue::read() {
  rethrow();
  if (ended_) return std::nullopt;
  std::optional<LineBlock> block = reader_.next(job_.block_lines);
  if (!block) {
    ended_ = true;
    changed_.notify_all();
    return block;
  }
  hash_ = hash_lines(hash_, block->lines);
  begun_[block->first] = {block->lines.size(), bytes_of(block->lines), hash_, std::nullopt};
  return block;
}

void LineQueue::put(size_t first, BlockResult result) {
  const std::lock_guard lock(mutex_);
  rethrow();
  begun_.at(first).result = std::move(result);
  while (!begun_.empty() && begun_.begin()->second.result) {
    write(begun_.begin()->second);
    begun_.erase(begun_.begin());
  }
  changed_.notify_all();
}

void LineQueue::write(const Begun& block) {
  const BlockResult& result = *block.result;
  written_.lines += static_cast<int64_t>(block.lines);
  written_.tokens += result.tokens;
  if (written_.cut == 0) written_.first_cut = result.first_cut;
  written_.cut += result.cut;
  if (written_.errors == 0) written_.first_error = result.first_error;
  written_.errors += result.errors;
  written_.lines_hash = block.hash_after;
  output_->add(result.bytes, written_);
  bytes_ += block.bytes;
  if (job_.report) job_.report(written_, bytes_);
}

void LineQueue::fail(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  error_ = std::move(error);
  changed_.notify_all();
}

void LineQueue::check() {
  const std::lock_guard lock(mutex_);
  rethrow();
}

void LineQueue::rethrow() const {
  if (error_) std::rethrow_exception(error_);
}

JobProgress LineQueue::finish() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return error_ || begun_.empty(); });
  rethrow();
  output_->finish(job_.beginning ? job_.beginning(written_.lines) : "");
  return written_;
}

void compute_blocks(LineQueue& queue, const std::function<BlockResult(const LineBlock&)>& compute,
                    const std::function<bool()>& stopped) {
  try {
    while (!stopped()) {
      const std::optional<LineBlock> block = queue.take();
      if (!block) return;
      queue.put(block->first, compute(*block));
    }
  } catch (...) {
    queue.fail(std::current_exception());
  }
}

}  // namespace fovea::jobs
