#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "fovea/core/error.h"
#include "fovea/infer/engine.h"

namespace fovea::cli {

// Passes an answer from the engine's thread to the terminal's thread.
class AnswerStream {
 public:
  bool receive(const infer::Event& event) {
    const std::lock_guard lock(mutex_);
    text_ += event.text;
    if (event.finished) answer_ = *event.finished;
    if (event.error) error_ = *event.error;
    done_ = done_ || event.finished || event.error;
    changed_.notify_one();
    return !stopped_;
  }

  // Passes the text to `take` as it arrives, until the answer is complete or stop() returns true.
  template <class Take, class Stop>
  infer::Generation follow(Take&& take, Stop&& stop) {
    std::unique_lock lock(mutex_);
    std::string shown;
    while (true) {
      changed_.wait_for(lock, std::chrono::milliseconds(50),
                        [&] { return done_ || !text_.empty(); });
      const std::string piece = std::exchange(text_, {});
      shown += piece;
      const bool last = done_;
      lock.unlock();
      take(piece);
      const bool stopping = stop();
      lock.lock();
      if (last) break;
      if (!stopping) continue;
      stopped_ = true;
      answer_.text = shown;
      answer_.finish = infer::FinishReason::cancelled;
      return answer_;
    }
    if (error_) throw *error_;
    return answer_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string text_;
  std::optional<Error> error_;
  infer::Generation answer_;
  bool done_ = false, stopped_ = false;
};

}  // namespace fovea::cli
