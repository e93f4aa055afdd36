#include "kernels/cpu/scratch.h"

#include <array>
#include <new>

#include "hwy/aligned_allocator.h"

namespace fovea::cpu {
namespace {

struct Buffer {
  hwy::AlignedFreeUniquePtr<float[]> data;
  int64_t floats = 0;
};

}  // namespace

float* scratch(ScratchUse use, int64_t floats) {
  thread_local std::array<Buffer, static_cast<size_t>(ScratchUse::count)> buffers;
  Buffer& buffer = buffers[static_cast<size_t>(use)];
  if (buffer.floats < floats) {
    buffer.data.reset();
    buffer.data = hwy::AllocateAligned<float>(static_cast<size_t>(floats));
    buffer.floats = buffer.data ? floats : 0;
    if (!buffer.data) throw std::bad_alloc();
  }
  return buffer.data.get();
}

}  // namespace fovea::cpu
