#pragma once

// Runs the texts of many callers through one model on a thread: waiting texts of similar length
// share a batch, regardless of their caller.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/float_mode.h"
#include "embed/batching.h"
#include "fovea/infer/embed_queue.h"
#include "tensor/tape.h"

namespace fovea::infer {

// `Text` has a number of tokens, length_of(text); `Row` is the model's result for a text.
template <class Text, class Row>
class BatchQueue {
 public:
  // Returns the row of each text; its bits do not depend on the other texts. Only texts of the same
  // `group` share a batch.
  using Model = std::function<std::vector<Row>(const std::vector<Text>& texts, int64_t group)>;
  // Receives either the rows of a job's texts (empty ones for texts without tokens) or an error.
  // Called once, on the queue's thread, unless the job was cancelled or the queue was destroyed.
  using Done = std::function<void(std::vector<Row> rows, const Error* error)>;

  BatchQueue(Model model, const QueueOptions& options)
      : model_(std::move(model)), options_(options), thread_([this] { run(); }) {}
  ~BatchQueue() {  // drops waiting texts
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }
  BatchQueue(const BatchQueue&) = delete;
  BatchQueue& operator=(const BatchQueue&) = delete;

  bool full() const {
    const std::lock_guard lock(mutex_);
    return too_much();
  }

  // Returns the job's number, or 0 if too many jobs or tokens wait.
  uint64_t add(std::vector<Text> texts, int64_t group, Done done) {
    Job job;
    job.rows.resize(texts.size());
    job.texts = std::move(texts);
    job.group = group;
    job.done = std::move(done);
    uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      if (too_much()) return 0;
      number = ++numbers_;
      for (size_t i = 0; i < job.texts.size(); ++i) {
        const int64_t length = length_of(job.texts[i]);
        if (length == 0) continue;
        waiting_.insert({group, length, number, i});
        waiting_tokens_ += length;
        ++job.left;
      }
      ++status_.requests;
      turns_.push_back(number);
      jobs_.emplace(number, std::move(job));
    }
    wake_.notify_one();
    return number;
  }

  void cancel(uint64_t number) {
    Job dropped;  // freed without the lock
    const std::lock_guard lock(mutex_);
    if (const auto found = jobs_.find(number); found != jobs_.end()) dropped = taken_out(found);
  }

  QueueStatus status() const {
    const std::lock_guard lock(mutex_);
    QueueStatus status = status_;
    status.waiting = std::ssize(jobs_);
    status.waiting_tokens = waiting_tokens_;
    return status;
  }

 private:
  struct Job {
    std::vector<Text> texts;  // emptied as they are computed
    std::vector<Row> rows;
    int64_t group = 0;
    size_t left = 0, next = 0;  // number of texts without a result; no text before `next` waits
    Done done;
  };
  // A waiting text. Waiting texts are sorted, so that texts of similar length are adjacent.
  struct WaitingText {
    int64_t group, length;
    uint64_t job;
    size_t text;
    auto operator<=>(const WaitingText&) const = default;
  };
  using WaitingTexts = std::set<WaitingText>;
  using Jobs = std::map<uint64_t, Job>;
  struct Batch {
    std::set<uint64_t> jobs;
    std::vector<WaitingText> members;
    std::vector<Text> texts;
  };

  // In batches of at most this many tokens, the lengths may differ more, since reading the weights
  // dominates the time of such a pass.
  static constexpr int64_t kSmallBatch = 128;
  // Limits padding: the lengths of a batch's texts differ by at most about a quarter.
  static bool alike(int64_t shortest, int64_t longest) {
    return longest <= shortest + shortest / 4 + 1;
  }

  bool too_much() const {
    return std::ssize(jobs_) >= options_.most_waiting || waiting_tokens_ > options_.most_tokens;
  }

  // Removes a job and its waiting texts. The caller must hold the mutex.
  Job taken_out(typename Jobs::iterator found) {
    const uint64_t number = found->first;
    Job job = std::move(found->second);
    for (size_t i = 0; i < job.texts.size(); ++i) {
      const int64_t length = length_of(job.texts[i]);
      if (waiting_.erase({job.group, length, number, i}) > 0) waiting_tokens_ -= length;
    }
    std::erase(turns_, number);
    jobs_.erase(found);
    return job;
  }

  // Returns the first waiting text of the job whose turn it is; waiting_.end() if it has none.
  typename WaitingTexts::iterator next_text() {
    const uint64_t number = turns_.front();
    turns_.pop_front();
    turns_.push_back(number);
    Job& job = jobs_.at(number);
    if (job.left == 0) return waiting_.end();
    while (length_of(job.texts[job.next]) == 0) ++job.next;
    return waiting_.find({job.group, length_of(job.texts[job.next]), number, job.next});
  }

  // Returns the range [first, end) of texts that share a batch with `text`: those closest in
  // length, as many as fit.
  std::pair<typename WaitingTexts::iterator, typename WaitingTexts::iterator> like(
      typename WaitingTexts::iterator text) const {
    const int64_t most = options_.batch_tokens > 0 ? options_.batch_tokens : kFastBatchTokens;
    auto first = text, end = std::next(text);
    int64_t shortest = text->length, longest = text->length, count = 1;
    const auto fits = [&](const WaitingText& other) {
      const int64_t low = std::min(shortest, other.length), high = std::max(longest, other.length);
      const int64_t tokens = high * (count + 1);
      return other.group == text->group && tokens <= most &&
             (alike(low, high) || tokens <= kSmallBatch);
    };
    while (true) {
      const bool below = first != waiting_.begin() && fits(*std::prev(first));
      const bool above = end != waiting_.end() && fits(*end);
      if (!below && !above) return {first, end};
      const bool down = below && (!above || text->length - std::prev(first)->length <=
                                                end->length - text->length);
      if (down) {
        shortest = (--first)->length;
      } else {
        longest = (end++)->length;
      }
      ++count;
    }
  }

  Batch take() {
    Batch batch;
    const auto text = next_text();
    batch.jobs.insert(turns_.back());
    if (text == waiting_.end()) return batch;
    const auto [first, end] = like(text);
    for (auto member = first; member != end; ++member) {
      batch.jobs.insert(member->job);
      batch.members.push_back(*member);
      batch.texts.push_back(std::exchange(jobs_.at(member->job).texts[member->text], {}));
      waiting_tokens_ -= member->length;
      status_.tokens += member->length;
    }
    waiting_.erase(first, end);
    ++status_.batches;
    return batch;
  }

  void compute(Batch& batch) {
    const NoGradient off;
    std::vector<Row> rows = model_(batch.texts, batch.members[0].group);
    const std::lock_guard lock(mutex_);
    for (size_t b = 0; b < batch.members.size(); ++b) {
      const auto job = jobs_.find(batch.members[b].job);
      if (job == jobs_.end()) continue;  // cancelled in the meantime
      job->second.rows[batch.members[b].text] = std::move(rows[b]);
      --job->second.left;
    }
  }

  // Finishes those of `jobs` that are complete, or all of `jobs` after an error.
  void finish(const std::set<uint64_t>& jobs, const Error* error) {
    for (const uint64_t number : jobs) {
      Job job;
      {
        const std::lock_guard lock(mutex_);
        const auto found = jobs_.find(number);
        if (found == jobs_.end() || (found->second.left > 0 && error == nullptr)) continue;
        job = taken_out(found);
      }
      job.done(std::move(job.rows), error);
    }
  }

  void run() {
    const FloatMode mode;
    while (true) {
      Batch batch;
      {
        std::unique_lock lock(mutex_);
        wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        batch = take();
      }
      try {
        if (!batch.texts.empty()) compute(batch);
        finish(batch.jobs, nullptr);
      } catch (const Error& error) {
        finish(batch.jobs, &error);
      } catch (const std::bad_alloc&) {
        const Error error(ErrorKind::OutOfMemory,
                          "no memory is left for this request; expected more");
        finish(batch.jobs, &error);
      } catch (const std::exception& unexpected) {
        const Error error(ErrorKind::Internal, unexpected.what());
        finish(batch.jobs, &error);
      }
    }
  }

  const Model model_;
  const QueueOptions options_;

  mutable std::mutex mutex_;  // guards the following members
  std::condition_variable wake_;
  Jobs jobs_;
  std::deque<uint64_t> turns_;  // the next batch is built around a text of the first job
  WaitingTexts waiting_;
  uint64_t numbers_ = 0;
  int64_t waiting_tokens_ = 0;
  bool stopping_ = false;
  QueueStatus status_;

  std::thread thread_;  // declared last, since it uses the other members
};

}  // namespace fovea::infer
