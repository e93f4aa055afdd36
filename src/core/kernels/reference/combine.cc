#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void combine(Out y, In z, Indices places, In weights, int64_t choices, Rows rows) {
  for (int64_t i = 0; i < rows.count * rows.width; ++i) {
    const int64_t row = i / rows.width;
    double sum = 0;
    for (int64_t j = row * choices; j < (row + 1) * choices; ++j)
      sum += get(weights, j) * get(z, places[j] * rows.width + i % rows.width);
    put(y, i, sum);
  }
}

void combine_backward(Out dz, Out dweights, In dy, In z, Indices places, In weights,
                      int64_t choices, Rows rows) {
  for (int64_t j = 0; j < rows.count * choices; ++j) {
    const int64_t from = j / choices * rows.width, to = places[j] * rows.width;
    double dot = 0;
    for (int64_t c = 0; c < rows.width; ++c) {
      dot += get(dy, from + c) * get(z, to + c);
      put(dz, to + c, get(weights, j) * get(dy, from + c));
    }
    put(dweights, j, dot);
  }
}

}  // namespace fovea::reference
