// Sums over rows: of the blocks of each unit of a batch, then over these (see row_blocks-inl.h).

#include "kernels/cuda/dialect.h"
#include "kernels/sum_tree.h"

namespace fovea::cuda {

KERNEL(sum_rows_of_blocks)(float* partial, In x, const int64_t* blocks, int64_t width) {
  const int64_t block = block_y();
  for (int64_t j = first_element(); j < width; j += element_stride()) {
    float sum = 0;
    for (int64_t i = blocks[block]; i < blocks[block + 1]; ++i) sum += get(x, i * width + j);
    partial[block * width + j] = sum;
  }
}

KERNEL(add_blocks)
(Out y, const float* partial, const int64_t* of_units, int64_t units, int64_t stride,
 int64_t width) {
  for (int64_t j = first_element(); j < width; j += element_stride()) {
    float sums[SumTree::kMost] = {};
    const auto merge = [&](int slot) { sums[slot - 1] += sums[slot]; };
    SumTree tree;
    for (int64_t unit = 0; unit < units; ++unit) {
      float sum = 0;
      for (int64_t block = of_units[unit]; block < of_units[unit + 1]; ++block)
        sum += partial[block * stride + j];
      sums[tree.next(unit, merge)] = sum;
    }
    put(y, j, tree.finish(merge) ? sums[0] : 0);
  }
}

}  // namespace fovea::cuda
