// Elementwise kernels: one vector function over entire arrays, in blocks, on all threads.

#if defined(FOVEA_KERNELS_CPU_MAP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_MAP_INL_H_
#undef FOVEA_KERNELS_CPU_MAP_INL_H_
#else
#define FOVEA_KERNELS_CPU_MAP_INL_H_
#endif

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// 4 KB of floats: an output and two inputs take 12 KB of the first-level cache.
constexpr int64_t kBlock = 1024;

struct FloatBlock {
  FloatBlock() {}  // NOLINT: a defaulted constructor would zero a temporary
  float values[kBlock];
};

// y (+)= f(x...) for `size` elements of any stored types.
template <class F, class... Inputs>
void map_all(Out y, int64_t size, const F& f, Inputs... x) {
  const auto blocks = [&](int64_t first, int64_t last) HWY_ATTR {
    FloatBlock output;
    for (int64_t begin = first * kBlock; begin < std::min(last * kBlock, size); begin += kBlock) {
      const int64_t count = std::min(kBlock, size - begin);
      float* room = room_for(y, begin, output.values);
      map(room, count, f, widened(x, begin, count, FloatBlock().values)...);
      narrow_into(y, begin, count, room);
    }
  };
  parallel_for((size + kBlock - 1) / kBlock, kGrainElements / kBlock, blocks);
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
