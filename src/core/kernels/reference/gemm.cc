#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void gemm(Out c, In a, In b, In bias, const GemmShape& shape) {
  const auto [m, n, k, transpose_a, transpose_b, units, second, kept] = shape;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < k; ++l) {
        sum += get(a, transpose_a ? l * m + i : i * k + l) *
               get(b, transpose_b ? j * k + l : l * n + j);
      }
      for (int64_t l = 0; l < second.k; ++l)
        sum += get(second.a, i * second.k + l) *
               get(second.b, transpose_b ? j * second.k + l : l * n + j);
      put(c, i * n + j, sum + (bias.data == nullptr ? 0 : get(bias, j)));
    }
  }
}

}  // namespace fovea::reference
