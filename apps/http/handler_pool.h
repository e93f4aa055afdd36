#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace fovea::http {

// Threads that run handlers, so that a long prompt does not block other clients, or other long work
// of a server.
class HandlerPool {
 public:
  HandlerPool(size_t threads, size_t most_waiting);
  ~HandlerPool() { stop(); }
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  bool run(std::function<void()> work);  // false if too many tasks wait
  void stop();                           // drops waiting tasks and waits for running ones
  bool stopping() const { return stopped_; }

 private:
  void work_on();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> waiting_;
  size_t most_waiting_;
  std::atomic<bool> stopped_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace fovea::http
