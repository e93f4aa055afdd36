#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"
#include "kernels/sum_tree.h"

namespace fovea::reference {

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  const auto [m, n, k, transpose_a, transpose_b, units] = shape;
  std::vector<double> sums(static_cast<size_t>(SumTree::places(units.count)));
  const auto merge = [&](int place) {
    sums[static_cast<size_t>(place) - 1] += sums[static_cast<size_t>(place)];
  };
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      SumTree tree;
      for (int64_t unit = 0; unit < units.count; ++unit) {
        double& sum = sums[static_cast<size_t>(tree.next(unit, merge))];
        sum = 0;
        for (int64_t l = units.start(unit, k); l < units.start(unit + 1, k); ++l) {
          sum += get(a, transpose_a ? l * m + i : i * k + l) *
                 get(b, transpose_b ? j * k + l : l * n + j);
        }
      }
      tree.finish(merge);
      put(c, i * n + j, sums[0] + (bias.data == nullptr ? 0 : get(bias, j)));
    }
  }
}

}  // namespace fovea::reference
