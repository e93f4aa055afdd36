#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {

void sgd(Out weight, Out m, In gradient, const Sgd& step, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double w = get({weight.data, weight.dtype}, i);
    const double g = get(gradient, i) * step.gradient_scale + static_cast<double>(step.decay) * w;
    double direction = g;
    if (m.data != nullptr) {
      const double sum = static_cast<double>(step.momentum) * get({m.data, m.dtype}, i) + g;
      put(m, i, sum);
      direction = step.nesterov ? g + step.momentum * sum : sum;
    }
    put(weight, i, w - step.rate * direction);
  }
}

void lion(Out weight, Out m, In gradient, const Lion& step, int64_t size) {
  for (int64_t i = 0; i < size; ++i) {
    const double w = get({weight.data, weight.dtype}, i), first = get({m.data, m.dtype}, i);
    const double g = get(gradient, i) * step.gradient_scale;
    const double sum = step.beta1 * first + (1.0 - step.beta1) * g;
    const double sign = sum > 0 ? 1 : sum < 0 ? -1 : 0;
    put(weight, i, w - step.rate * (sign + static_cast<double>(step.decay) * w));
    put(m, i, step.beta2 * first + (1.0 - step.beta2) * g);
  }
}

}  // namespace fovea::reference
