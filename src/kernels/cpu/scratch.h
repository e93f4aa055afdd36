#pragma once

#include <cstdint>

namespace fovea::cpu {

// Scratch of the calling thread, kept from call to call: fresh memory for each task costs more in
// page faults, or in looking for it, than a small task takes. Pieces start at cache lines, and what
// they hold is undefined. One at a time in a thread: a second takes the first one's memory.
class Scratch {
 public:
  explicit Scratch(int64_t floats);  // of all pieces, each as size_of() has it
  float* take(int64_t floats);
  static constexpr int64_t size_of(int64_t floats) { return (floats + 15) / 16 * 16; }

 private:
  float* next_;
};

}  // namespace fovea::cpu
