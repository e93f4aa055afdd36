#include "http/handler_pool.h"

#include <utility>

namespace fovea::http {

HandlerPool::HandlerPool(size_t threads, size_t most_waiting) : most_waiting_(most_waiting) {
  for (size_t i = 0; i < threads; ++i) threads_.emplace_back([this] { work_on(); });
}

bool HandlerPool::run(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  if (stopped_ || waiting_.size() >= most_waiting_) return false;
  waiting_.push_back(std::move(work));
  changed_.notify_one();
  return true;
}

void HandlerPool::stop() {
  std::deque<std::function<void()>> dropped;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    dropped.swap(waiting_);
    changed_.notify_all();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void HandlerPool::work_on() {
  while (true) {
    std::function<void()> work;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopped_ || !waiting_.empty(); });
      if (stopped_) return;
      work = std::move(waiting_.front());
      waiting_.pop_front();
    }
    work();
  }
}

}  // namespace fovea::http
