#include <algorithm>
#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void softmax(Out y, In x, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double most = get(x, row), sum = 0;
    for (int64_t j = 1; j < rows.width; ++j) most = std::max(most, get(x, row + j));
    for (int64_t j = 0; j < rows.width; ++j) sum += std::exp(get(x, row + j) - most);
    for (int64_t j = 0; j < rows.width; ++j)
      put(y, row + j, std::exp(get(x, row + j) - most) / sum);
  }
}

void softmax_backward(Out dx, In dy, In y, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double dot = 0;
    for (int64_t j = 0; j < rows.width; ++j) dot += get(dy, row + j) * get(y, row + j);
    for (int64_t j = 0; j < rows.width; ++j)
      put(dx, row + j, get(y, row + j) * (get(dy, row + j) - dot));
  }
}

void divide_by_sum(Out y, In x, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double sum = kLeastSum;
    for (int64_t j = 0; j < rows.width; ++j) sum += get(x, row + j);
    for (int64_t j = 0; j < rows.width; ++j) put(y, row + j, get(x, row + j) / sum);
  }
}

void divide_by_sum_backward(Out dx, In dy, In x, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double sum = kLeastSum, dot = 0;
    for (int64_t j = 0; j < rows.width; ++j) {
      sum += get(x, row + j);
      dot += get(dy, row + j) * get(x, row + j);
    }
    for (int64_t j = 0; j < rows.width; ++j) put(dx, row + j, (get(dy, row + j) - dot / sum) / sum);
  }
}

}  // namespace fovea::reference
