#pragma once

#include <atomic>
#include <cstdint>

namespace fovea::http {

// The memory that all requests of a server hold together: bodies, what handlers keep of them, and
// responses that are not sent yet. It must outlive its shares.
class HeldMemory {
 public:
  explicit HeldMemory(int64_t most) : most_(most) {}
  int64_t held() const { return held_; }
  // Returns the largest size since the last call.
  int64_t take_peak() { return peak_.exchange(held_); }

  // The part of one request. Safe to use from one thread at a time.
  class Share {
   public:
    explicit Share(HeldMemory& all) : all_(&all) {}
    ~Share() { all_->held_ -= bytes_; }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

    // Changes the size. Returns false, without a change, if all shares would exceed the limit;
    // a smaller size and one of at most `free` bytes are always possible.
    bool set(int64_t bytes, int64_t free = 0);
    bool add(int64_t bytes) { return set(bytes_ + bytes); }
    int64_t bytes() const { return bytes_; }

   private:
    HeldMemory* all_;
    int64_t bytes_ = 0;
  };

 private:
  const int64_t most_;
  std::atomic<int64_t> held_{0}, peak_{0};
};

}  // namespace fovea::http
