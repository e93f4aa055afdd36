// Sums over rows, as the gradients of biases and norm weights need them: each block of 64 rows has
// its own partial sums, which are added in the order of the blocks, so that the threads cannot
// change a bit.

#if defined(FOVEA_KERNELS_CPU_ROW_BLOCKS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ROW_BLOCKS_INL_H_
#undef FOVEA_KERNELS_CPU_ROW_BLOCKS_INL_H_
#else
#define FOVEA_KERNELS_CPU_ROW_BLOCKS_INL_H_
#endif

#include <vector>

#include "base/threads.h"
#include "kernels/cpu/simd-inl.h"
#include "kernels/cpu/stored.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

constexpr int64_t kRowBlock = 64;

inline int64_t row_blocks(Rows rows) { return (rows.count + kRowBlock - 1) / kRowBlock; }

// y[width] (+)= the sum over blocks of partial[block * stride + j].
inline void add_blocks(Out y, const float* partial, int64_t blocks, int64_t stride, int64_t width) {
  if (y.data == nullptr) return;
  parallel_for(width, kGrainElements / (blocks + 1) + 1, [&](int64_t begin, int64_t end) HWY_ATTR {
    std::vector<float> sums(static_cast<size_t>(end - begin));
    for (int64_t block = 0; block < blocks; ++block) {
      add_floats(sums.data(), partial + block * stride + begin, end - begin);
    }
    narrow_into(y, begin, end - begin, sums.data());
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
