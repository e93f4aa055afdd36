// Sums over rows for the gradients of biases and norm weights. Each block of 64 rows of a unit has
// its own partial sums. They are added in the order of the blocks, and the units' sums by their
// tree, so that the number of threads does not affect the bits of the result.

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
#include "kernels/row_blocks.h"
#include "kernels/sum_tree.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// y[j] (+)= the sum over blocks of partial[block * stride + j], for j < width.
inline void add_blocks(Out y, const float* partial, const RowBlocks& blocks, int64_t stride,
                       int64_t width) {
  if (y.data == nullptr) return;
  const int64_t grain = kGrainElements / (blocks.count() + 1) + 1;
  const int64_t units = std::ssize(blocks.of_units) - 1;
  parallel_for(width, grain, [&](int64_t begin, int64_t end) HWY_ATTR {
    const int64_t count = end - begin;
    std::vector<float> sums(static_cast<size_t>(SumTree::slots(units) * count));
    const auto merge = [&](int slot) HWY_ATTR {
      float* sum = sums.data() + slot * count;
      add_floats(sum - count, sum, count);
    };
    SumTree tree;
    for (int64_t unit = 0; unit < units; ++unit) {
      float* sum = sums.data() + tree.next(unit, merge) * count;
      std::fill_n(sum, count, 0.0f);
      for (int64_t block = blocks.of_units[static_cast<size_t>(unit)];
           block < blocks.of_units[static_cast<size_t>(unit) + 1]; ++block) {
        add_floats(sum, partial + block * stride + begin, count);
      }
    }
    tree.finish(merge);
    narrow_into(y, begin, count, sums.data());
  });
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
