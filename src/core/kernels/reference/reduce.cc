#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void sum_rows(Out y, In x, Rows rows) {
  for (int64_t j = 0; j < rows.width; ++j) {
    double sum = 0;
    for (int64_t i = 0; i < rows.count; ++i) sum += get(x, i * rows.width + j);
    put(y, j, sum);
  }
}

double sum(In x, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += get(x, i);
  return sum;
}

double sum_of_squares(In x, int64_t size) {
  double sum = 0;
  for (int64_t i = 0; i < size; ++i) sum += get(x, i) * get(x, i);
  return sum;
}

}  // namespace fovea::reference
