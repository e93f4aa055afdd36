#include "kernels/cpu/gemm_scratch.h"

#include <array>

#include "hwy/aligned_allocator.h"

namespace fovea::cpu {
namespace {

struct Buffer {
  hwy::AlignedFreeUniquePtr<float[]> data;
  size_t floats = 0;
};

}  // namespace

float* gemm_scratch(GemmScratch use, size_t floats) {
  thread_local std::array<Buffer, static_cast<size_t>(GemmScratch::count)> buffers;
  Buffer& buffer = buffers[static_cast<size_t>(use)];
  if (buffer.floats < floats) {
    buffer.data.reset();
    buffer.data = hwy::AllocateAligned<float>(floats);
    buffer.floats = buffer.data ? floats : 0;
    if (!buffer.data) throw std::bad_alloc();
  }
  return buffer.data.get();
}

}  // namespace fovea::cpu
