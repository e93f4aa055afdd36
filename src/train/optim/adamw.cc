#include "base/math.h"
#include "optim/rules.h"

namespace fovea::train {

// Loshchilov and Hutter 2019, algorithm 2; the kernel has the formula.
void adamw_rule(const Trained& it, const Tensor& gradient, const RuleStep& step,
                const OptimizerOptions& o) {
  const auto t = static_cast<double>(step.number);
  const AdamW adamw{.rate = static_cast<float>(step.rate),
                    .beta1 = static_cast<float>(o.beta1),
                    .beta2 = static_cast<float>(o.beta2),
                    .epsilon = static_cast<float>(o.epsilon),
                    .decay = static_cast<float>(step.decay),
                    .correction1 = static_cast<float>(1 - math::pow(o.beta1, t)),
                    .correction2 = static_cast<float>(1 - math::pow(o.beta2, t)),
                    .gradient_scale = step.gradient_scale};
  const Kernels& k = kernels(gradient);
  const Tensor& weight = it.parameter->value;
  if (!o.packed_moments)
    return k.adamw(weight, it.values[0], it.values[1], gradient, adamw, gradient.size());
  k.packed_adamw(weight,
                 {.m = it.values[0],
                  .v = it.values[1],
                  .largest_m = it.values[2],
                  .largest_v = it.values[3],
                  .seed = o.seed,
                  .step = static_cast<uint64_t>(step.number),
                  .parameter = it.index},
                 gradient, adamw, gradient.size());
}

}  // namespace fovea::train
