#include <cmath>

#include "kernels/reference/reference.h"

namespace fovea::reference {

void adamw(float* weight, float* m, float* v, const float* gradient, const AdamW& step,
           int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double g = static_cast<double>(gradient[i]) * step.gradient_scale;
    const double first = step.beta1 * static_cast<double>(m[i]) + (1.0 - step.beta1) * g;
    const double second = step.beta2 * static_cast<double>(v[i]) + (1.0 - step.beta2) * g * g;
    const double direction =
        first / step.correction1 / (std::sqrt(second / step.correction2) + step.epsilon);
    weight[i] = static_cast<float>(
        weight[i] - step.rate * (direction + static_cast<double>(step.decay) * weight[i]));
    m[i] = static_cast<float>(first);
    v[i] = static_cast<float>(second);
  }
}

}  // namespace fovea::reference
