#pragma once

#include <cstdint>

namespace fovea::cpu {

// The uses of scratch buffers. A thread has one buffer for each.
enum class ScratchUse {
  packed_a,
  packed_b,
  unpacked,
  carry,
  bias,
  scales,
  corrections,
  pieces,
  count
};

// Returns a buffer of the calling thread, aligned to cache lines. The buffer exists until the
// thread ends and only grows, so that training allocates nothing in its steady state. Its contents
// are undefined. Throws std::bad_alloc if there is not enough memory.
float* scratch(ScratchUse use, int64_t floats);

// One buffer of the calling thread, divided into pieces that start at cache lines. A second Scratch
// of the same thread uses the same memory, so a thread must have at most one at a time.
class Scratch {
 public:
  // `floats` is the sum of size_of() of all pieces.
  explicit Scratch(int64_t floats) : next_(scratch(ScratchUse::pieces, floats)) {}
  float* take(int64_t floats) {
    float* piece = next_;
    next_ += size_of(floats);
    return piece;
  }
  static constexpr int64_t size_of(int64_t floats) { return (floats + 15) / 16 * 16; }

 private:
  float* next_;
};

}  // namespace fovea::cpu
