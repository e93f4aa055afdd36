// Rows of a table, and their gradient.

#include "kernels/cuda/dialect.h"
#include "kernels/sum_tree.h"

namespace fovea::cuda {

KERNEL(embedding)(Out y, In table, const int32_t* ids, int64_t count, int64_t width) {
  for (int64_t e = first_element(); e < count * width; e += element_stride())
    put(y, e, get(table, ids[e / width] * width + e % width));
}

// One thread for each element of the table: the rows of an entry in ascending order within a unit,
// then over the units by their tree.
KERNEL(embedding_backward)
(Out dtable, In dy, const int64_t* order, const int64_t* starts, const int64_t* unit_of,
 int64_t entries, int64_t width) {
  for (int64_t e = first_element(); e < entries * width; e += element_stride()) {
    const int64_t entry = e / width, j = e % width;
    if (starts[entry] == starts[entry + 1] && dtable.add) continue;
    float sums[SumTree::kMost] = {};
    const auto merge = [&](int slot) { sums[slot - 1] += sums[slot]; };
    SumTree tree;
    int64_t unit = -1;
    int slot = 0;
    for (int64_t i = starts[entry]; i < starts[entry + 1]; ++i) {
      if (unit_of[order[i]] != unit) {
        unit = unit_of[order[i]];
        slot = tree.next(unit, merge);
        sums[slot] = 0;
      }
      sums[slot] += get(dy, order[i] * width + j);
    }
    put(dtable, e, tree.finish(merge) ? sums[0] : 0);
  }
}

}  // namespace fovea::cuda
