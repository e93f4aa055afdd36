#include "optim/rules.h"

namespace fovea::train {

// Gradient descent with momentum, as in torch.optim.SGD: weight decay is added to the gradient, and
// m to the weights, which with Nesterov's momentum is g + momentum m (Sutskever et al. 2013,
// eq. 3 and 4).
void sgd_rule(const Trained& it, const Tensor& gradient, const RuleStep& step,
              const OptimizerOptions& o) {
  const Sgd sgd{.rate = static_cast<float>(step.rate),
                .momentum = static_cast<float>(o.choice.momentum),
                .decay = static_cast<float>(step.decay),
                .nesterov = o.choice.nesterov,
                .gradient_scale = step.gradient_scale};
  kernels(gradient).sgd(it.parameter->value, it.values.empty() ? Out{} : Out(it.values[0]),
                        gradient, sgd, gradient.size());
}

}  // namespace fovea::train
