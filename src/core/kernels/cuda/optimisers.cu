// Steps of optimisers.

#include "kernels/cuda/numbers.h"
//
#include "kernels/cpu/adamw-inl.h"

namespace fovea::cuda {

KERNEL(adamw)(Out weight, Out m, Out v, In gradient, AdamW step, int64_t size) {
  const cpu::one_number::AdamWStep update(step);
  const cpu::one_number::Whole access;
  auto *const weights = static_cast<float*>(weight.data),
              *const first = static_cast<float*>(m.data),
              *const second = static_cast<float*>(v.data);
  for (int64_t i = first_element(); i < size; i += element_stride())
    update(access, weights + i, first[i], second[i], static_cast<const float*>(gradient.data) + i);
}

KERNEL(sgd)(Out weight, Out m, In gradient, Sgd step, int64_t size) {
  auto *const weights = static_cast<float*>(weight.data), *const sums = static_cast<float*>(m.data);
  for (int64_t i = first_element(); i < size; i += element_stride()) {
    const float old = weights[i];
    const float g = multiply_add(step.gradient_scale, get(gradient, i), step.decay * old);
    float direction = g;
    if (sums != nullptr) {
      sums[i] = multiply_add(step.momentum, sums[i], g);
      direction = step.nesterov ? multiply_add(step.momentum, sums[i], g) : sums[i];
    }
    weights[i] = multiply_add(-step.rate, direction, old);
  }
}

KERNEL(lion)(Out weight, Out m, In gradient, Lion step, int64_t size) {
  auto *const weights = static_cast<float*>(weight.data), *const first =
                                                              static_cast<float*>(m.data);
  for (int64_t i = first_element(); i < size; i += element_stride()) {
    const float g = step.gradient_scale * get(gradient, i), old = weights[i];
    const auto mixed = [&](float beta) { return multiply_add(beta, first[i], (1 - beta) * g); };
    const float sum = mixed(step.beta1), sign = sum == 0 ? 0 : copysignf(1.0f, sum);
    first[i] = mixed(step.beta2);
    weights[i] = multiply_add(-step.rate, multiply_add(step.decay, old, sign), old);
  }
}

}  // namespace fovea::cuda
