#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void embedding(Out y, In table, Indices ids, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    for (int64_t j = 0; j < rows.width; ++j)
      put(y, i * rows.width + j, get(table, ids[i] * rows.width + j));
  }
}

void embedding_backward(Out dtable, In dy, Indices ids, Rows rows, int64_t entries) {
  std::vector<double> sums(static_cast<size_t>(entries * rows.width));
  for (int64_t i = 0; i < rows.count; ++i) {
    double* row = sums.data() + ids[i] * rows.width;
    for (int64_t j = 0; j < rows.width; ++j) row[j] += get(dy, i * rows.width + j);
  }
  for (size_t i = 0; i < sums.size(); ++i) put(dtable, static_cast<int64_t>(i), sums[i]);
}

}  // namespace fovea::reference
