#include <algorithm>
#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void cross_entropy(Out losses, Out lse, In logits, Indices targets, float smoothing, Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double most = get(logits, row), sum = 0;
    for (int64_t j = 1; j < rows.width; ++j) most = std::max(most, get(logits, row + j));
    for (int64_t j = 0; j < rows.width; ++j) sum += std::exp(get(logits, row + j) - most);
    const double log_sum = most + std::log(sum);
    put(lse, i, log_sum);
    double loss = targets[i] < 0 ? 0 : log_sum - get(logits, row + targets[i]);
    for (int64_t j = 0; smoothing > 0 && targets[i] >= 0 && j < rows.width; ++j) {
      const double above = get(logits, row + targets[i]) - get(logits, row + j);
      loss += smoothing * above / static_cast<double>(rows.width);
    }
    put(losses, i, loss);
  }
}

void cross_entropy_backward(Out dlogits, In logits, In lse, Indices targets, In factors,
                            float factor, float smoothing, Rows rows, Classes classes) {
  const double others = smoothing / static_cast<double>(classes.of(rows.width)),
               own = 1.0 - smoothing + others;
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    const double row_factor = factors.data != nullptr ? factor * get(factors, i) : factor;
    for (int64_t j = 0; j < rows.width; ++j) {
      const double probability = std::exp(get(logits, row + j) - get(lse, i));
      const double gradient =
          (probability - (classes.first + j == targets[i] ? own : others)) * row_factor;
      put(dlogits, row + j, targets[i] < 0 ? 0 : gradient);
    }
  }
}

}  // namespace fovea::reference
