#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void scale_columns(Out y, In x, In factors, In bias, Rows rows) {
  for (int64_t i = 0; i < rows.count * rows.width; ++i) {
    const int64_t j = i % rows.width;
    put(y, i, get(x, i) * get(factors, j) + (bias.data == nullptr ? 0 : get(bias, j)));
  }
}

}  // namespace fovea::reference
