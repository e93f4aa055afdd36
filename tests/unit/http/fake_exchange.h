#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <vector>

#include "http/http.h"

namespace fovea::http {

// Stores the response of a handler.
class FakeExchange : public Exchange {
 public:
  void send(Response given) override {
    const std::lock_guard lock(mutex_);
    response = std::move(given);
    responded_.notify_all();
  }
  // Waits for the response of a handler that responds on another thread.
  void wait() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(responded_.wait_for(lock, std::chrono::seconds(30),
                                    [this] { return response.status != 0; }));
  }
  void begin(Response head) override { response = std::move(head), streamed = true; }
  bool write(std::string_view piece) override {
    pieces.emplace_back(piece);
    return !left;
  }
  void finish() override { finished = true; }
  void abort() override { aborted = true; }
  bool gone() const override { return left; }
  bool hold(int64_t bytes) override { return (held += bytes) <= most_held; }
  void on_gone(std::function<void()> call) override { leave_ = std::move(call); }

  void leave() {
    left = true;
    if (leave_) leave_();
  }

  Response response{0, "", {}, ""};
  std::vector<std::string> pieces;
  int64_t held = 0, most_held = INT64_MAX;
  bool streamed = false, finished = false, aborted = false, left = false;

 private:
  std::function<void()> leave_;
  std::mutex mutex_;
  std::condition_variable responded_;
};

}  // namespace fovea::http
