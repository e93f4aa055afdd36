#include <cmath>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void adamw(Out weight, Out m, Out v, In gradient, const AdamW& step, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double w = get({weight.data, weight.dtype}, i);
    const double g = get(gradient, i) * step.gradient_scale;
    const double first = step.beta1 * get({m.data, m.dtype}, i) + (1.0 - step.beta1) * g;
    const double second = step.beta2 * get({v.data, v.dtype}, i) + (1.0 - step.beta2) * g * g;
    const double direction =
        first / step.correction1 / (std::sqrt(second / step.correction2) + step.epsilon);
    put(weight, i, w - step.rate * (direction + static_cast<double>(step.decay) * w));
    put(m, i, first);
    put(v, i, second);
  }
}

}  // namespace fovea::reference
