#include <algorithm>
#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void cross_entropy(Out losses, Out lse, In logits, const int32_t* targets, float smoothing,
                   Rows rows) {
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    double most = get(logits, row), sum = 0, mean = 0;
    for (int64_t j = 1; j < rows.width; ++j) most = std::max(most, get(logits, row + j));
    for (int64_t j = 0; j < rows.width; ++j) sum += std::exp(get(logits, row + j) - most);
    const double log_sum = most + std::log(sum);
    put(lse, i, log_sum);
    for (int64_t j = 0; smoothing > 0 && j < rows.width; ++j)
      mean += get(logits, row + j) / static_cast<double>(rows.width);
    const double target = targets[i] < 0 ? 0 : (1.0 - smoothing) * get(logits, row + targets[i]);
    put(losses, i, targets[i] < 0 ? 0 : log_sum - target - smoothing * mean);
  }
}

void cross_entropy_backward(Out dlogits, In logits, In lse, const int32_t* targets, float factor,
                            float smoothing, Rows rows) {
  const double others = smoothing / static_cast<double>(rows.width);
  for (int64_t i = 0; i < rows.count; ++i) {
    const int64_t row = i * rows.width;
    for (int64_t j = 0; j < rows.width; ++j) {
      const double probability = std::exp(get(logits, row + j) - get(lse, i));
      const double gradient =
          (probability - others - (j == targets[i] ? 1.0 - smoothing : 0)) * factor;
      put(dlogits, row + j, targets[i] < 0 ? 0 : gradient);
    }
  }
}

}  // namespace fovea::reference
