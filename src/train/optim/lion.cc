#include "optim/rules.h"

namespace fovea::train {

// Chen et al. 2023, algorithm 2.
void lion_rule(const Trained& it, const Tensor& gradient, const RuleStep& step,
               const OptimizerOptions& o) {
  const Lion lion{.rate = static_cast<float>(step.rate),
                  .beta1 = static_cast<float>(o.beta1),
                  .beta2 = static_cast<float>(o.beta2),
                  .decay = static_cast<float>(step.decay),
                  .gradient_scale = step.gradient_scale};
  kernels(gradient).lion(it.parameter->value, it.values[0], gradient, lion, gradient.size());
}

}  // namespace fovea::train
