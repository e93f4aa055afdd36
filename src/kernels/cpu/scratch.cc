#include "kernels/cpu/scratch.h"

#include <new>

#include <hwy/aligned_allocator.h>

namespace fovea::cpu {

Scratch::Scratch(int64_t floats) {
  thread_local hwy::AlignedFreeUniquePtr<float[]> memory;
  thread_local int64_t capacity = 0;
  if (capacity < floats) {
    capacity = 0;
    memory.reset();
    memory = hwy::AllocateAligned<float>(static_cast<size_t>(floats));
    if (memory == nullptr) throw std::bad_alloc();
    capacity = floats;
  }
  next_ = memory.get();
}

float* Scratch::take(int64_t floats) {
  float* piece = next_;
  next_ += size_of(floats);
  return piece;
}

}  // namespace fovea::cpu
