#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "base/stop.h"
#include "call.h"

namespace fovea::python {

// Values from a thread that makes them to one that takes them.
template <class Value>
class Queue {
 public:
  static std::shared_ptr<Queue> made() { return std::make_shared<Queue>(); }

  // Returns false if nobody takes values any more.
  bool put(Value value) {
    const std::scoped_lock lock(mutex_);
    values_.push_back(std::move(value));
    changed_.notify_all();
    return !closed_;
  }
  // No more values follow; `error` is thrown by take().
  void end(std::exception_ptr error = nullptr) {
    const std::scoped_lock lock(mutex_);
    ended_ = true;
    error_ = std::move(error);
    changed_.notify_all();
  }
  // Nobody takes values any more.
  void close() {
    std::function<void()> call;
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
      call = std::exchange(on_close_, nullptr);
      changed_.notify_all();
    }
    if (call) call();
  }
  // Sets what the first close() calls; called immediately if the queue is closed.
  void on_close(std::function<void()> call) {
    {
      const std::scoped_lock lock(mutex_);
      if (!closed_) {
        on_close_ = std::move(call);
        return;
      }
    }
    call();
  }
  bool closed() const {
    const std::scoped_lock lock(mutex_);
    return closed_;
  }
  // Runs work that puts values; its loops end soon after close().
  template <class Work>
  void run(const Work& work) {
    try {
      const StopScope scope([this] { return closed() || is_ending(); });
      work();
      end();
    } catch (...) {
      end(std::current_exception());
    }
  }

  // Waits for the next value; returns nothing at the end.
  std::optional<Value> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !values_.empty() || ended_ || closed_; });
    if (!values_.empty() && !closed_) {
      Value value = std::move(values_.front());
      values_.pop_front();
      return value;
    }
    if (error_ && !closed_) std::rethrow_exception(error_);
    return {};
  }

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Value> values_;
  std::exception_ptr error_;
  std::function<void()> on_close_;
  bool ended_ = false, closed_ = false;
};

}  // namespace fovea::python
