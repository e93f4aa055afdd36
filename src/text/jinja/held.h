#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::text::jinja {

// Counts the bytes that a value holds, for as long as the value exists. A rendering compares the
// sum with that at its start: it makes and frees its values on one thread.
class Held {
 public:
  explicit Held(size_t bytes) { add(bytes); }
  Held(const Held& other) : Held(other.bytes_) {}
  Held& operator=(const Held&) = delete;
  ~Held() { all_ -= static_cast<int64_t>(bytes_); }

  void add(size_t bytes) {
    bytes_ += bytes;
    all_ += static_cast<int64_t>(bytes);
  }
  static int64_t all() { return all_; }  // of this thread

 private:
  size_t bytes_ = 0;
  inline static thread_local int64_t all_ = 0;
};

}  // namespace fovea::text::jinja
