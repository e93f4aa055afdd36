#pragma once

#include <cstdint>

namespace fovea::cpu {

// Scratch memory of the calling thread, reused between calls: fresh memory for each task costs more
// in page faults or allocation than a small task takes. Pieces start at cache lines; their contents
// are undefined. A thread can have only one at a time: a second one reuses the memory of the first.
class Scratch {
 public:
  explicit Scratch(int64_t floats);  // the total of all pieces, each as size_of() returns it
  float* take(int64_t floats);
  static constexpr int64_t size_of(int64_t floats) { return (floats + 15) / 16 * 16; }

 private:
  float* next_;
};

}  // namespace fovea::cpu
