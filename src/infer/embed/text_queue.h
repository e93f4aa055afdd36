#pragma once

// Computes the texts of many callers on one thread: waiting requests of the same group are computed
// together.

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <new>
#include <optional>
#include <thread>

#include "base/error.h"
#include "fovea/infer/retrieval_queue.h"

namespace fovea::infer {

// `Vectors` has count, starts and tokens, as SparseVectors has.
template <class Vectors>
class TextQueue {
 public:
  using Compute = std::function<Vectors(const std::vector<std::string>& texts)>;
  using Done = std::function<void(const Vectors* vectors, const Error* error)>;
  // Returns the vectors of the texts [begin, end).
  using Slice = Vectors (*)(const Vectors& all, int64_t begin, int64_t end);

  TextQueue(Slice slice, const QueueOptions& options)
      : slice_(slice), options_(options), thread_([this] { run(); }) {}
  ~TextQueue() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_one();
    thread_.join();
  }

  // Requests of the same group must have equal functions `compute`. Returns the request's number,
  // or 0 if too many wait.
  uint64_t add(std::string group, std::vector<std::string> texts, Compute compute, Done done) {
    uint64_t number = 0;
    {
      const std::lock_guard lock(mutex_);
      if (std::ssize(jobs_) + running_ >= options_.most_waiting) return 0;
      number = ++numbers_;
      ++status_.requests;
      jobs_.push_back(
          {number, std::move(group), std::move(texts), std::move(compute), std::move(done)});
    }
    wake_.notify_one();
    return number;
  }

  void cancel(uint64_t number) {
    const std::lock_guard lock(mutex_);
    std::erase_if(jobs_, [&](const Job& job) { return job.number == number; });
  }

  QueueStatus status() const {
    const std::lock_guard lock(mutex_);
    QueueStatus status = status_;
    status.waiting = std::ssize(jobs_) + running_;
    return status;
  }

 private:
  struct Job {
    uint64_t number;
    std::string group;
    std::vector<std::string> texts;
    Compute compute;
    Done done;
  };
  static constexpr size_t kTextsAtOnce = 256;

  // Returns the first waiting request and later ones of its group.
  std::vector<Job> take() {
    std::vector<Job> taken;
    size_t texts = 0;
    for (auto job = jobs_.begin(); job != jobs_.end();) {
      const bool fits = taken.empty() ||
                        (job->group == taken[0].group && texts + job->texts.size() <= kTextsAtOnce);
      if (!fits) {
        ++job;
        continue;
      }
      texts += job->texts.size();
      taken.push_back(std::move(*job));
      job = jobs_.erase(job);
    }
    running_ = std::ssize(taken);
    return taken;
  }

  static std::optional<Error> error_of(const std::function<void()>& work) {
    try {
      work();
      return std::nullopt;
    } catch (const Error& error) {
      return error;
    } catch (const std::bad_alloc&) {
      return Error(ErrorKind::OutOfMemory, "no memory is left for this request; expected more");
    } catch (const std::exception& unexpected) {
      return Error(ErrorKind::Internal, unexpected.what());
    }
  }

  // After an error, each request is computed alone, so that it affects only the request at fault.
  void compute(const std::vector<Job>& jobs) {
    std::vector<std::string> texts;
    for (const Job& job : jobs) texts.insert(texts.end(), job.texts.begin(), job.texts.end());
    Vectors all;
    const std::optional<Error> error = error_of([&] { all = jobs[0].compute(texts); });
    if (error && jobs.size() > 1) {
      for (const Job& job : jobs) compute({job});
      return;
    }
    if (error) return jobs[0].done(nullptr, &*error);
    {
      const std::lock_guard lock(mutex_);
      ++status_.batches;
      for (const int64_t tokens : all.tokens) status_.tokens += tokens;
    }
    int64_t first = 0;
    for (const Job& job : jobs) {
      const Vectors own = slice_(all, first, first + std::ssize(job.texts));
      job.done(&own, nullptr);
      first += std::ssize(job.texts);
    }
  }

  void run() {
    while (true) {
      std::vector<Job> jobs;
      {
        std::unique_lock lock(mutex_);
        running_ = 0;
        wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
        if (stopping_) return;
        jobs = take();
      }
      compute(jobs);
    }
  }

  const Slice slice_;
  const QueueOptions options_;
  mutable std::mutex mutex_;  // guards the following members
  std::condition_variable wake_;
  std::deque<Job> jobs_;
  int64_t running_ = 0;
  uint64_t numbers_ = 0;
  bool stopping_ = false;
  QueueStatus status_;
  std::thread thread_;  // declared last, since it uses the other members
};

}  // namespace fovea::infer
