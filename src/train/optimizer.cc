#include "train/optimizer.h"

#include <cmath>
#include <numeric>

#include "base/math.h"
#include "base/threads.h"

namespace fovea {

Optimizer::Optimizer(const std::vector<NamedParameter>& parameters, const OptimizerOptions& options)
    : options_(options) {
  for (const auto& [name, parameter] : parameters) {
    if (!parameter->trainable) continue;
    parameter->value.want_gradient();
    const auto zero = [p = parameter] { return zeros(p->shape, DType::f32, p->device()); };
    all_.push_back({name, parameter, zero(), zero()});
  }
}

double Optimizer::gradient_norm() const {
  // Runs one parallel task per tensor, since most tensors are too small to be divided among
  // threads.
  std::vector<double> sums(all_.size());
  parallel_tasks(static_cast<int64_t>(all_.size()), [&](int64_t i) {
    const Tensor gradient = all_[static_cast<size_t>(i)].parameter->value.gradient();
    if (!gradient) return;
    sums[static_cast<size_t>(i)] = kernels(gradient).sum_of_squares(gradient, gradient.size());
  });
  return std::sqrt(std::accumulate(sums.begin(), sums.end(), 0.0));
}

void Optimizer::update(int64_t step, double rate, double norm) {
  const AdamW common{
      .rate = static_cast<float>(rate),
      .beta1 = static_cast<float>(options_.beta1),
      .beta2 = static_cast<float>(options_.beta2),
      .epsilon = static_cast<float>(options_.epsilon),
      .correction1 = static_cast<float>(1 - math::pow(options_.beta1, static_cast<double>(step))),
      .correction2 = static_cast<float>(1 - math::pow(options_.beta2, static_cast<double>(step))),
      .gradient_scale = options_.clip > 0 && norm > options_.clip
                            ? static_cast<float>(options_.clip / norm)
                            : 1.0f};
  parallel_tasks(static_cast<int64_t>(all_.size()), [&](int64_t i) {
    const Moments& it = all_[static_cast<size_t>(i)];
    const Tensor gradient = it.parameter->value.gradient();
    if (!gradient) return;
    AdamW adamw = common;
    if (it.parameter->role == Role::adapter_up) adamw.rate *= static_cast<float>(options_.up_rate);
    adamw.decay = decays(it.parameter->role) ? static_cast<float>(options_.weight_decay) : 0.0f;
    kernels(gradient).adamw(it.parameter->value, it.m, it.v, gradient, adamw, gradient.size());
  });
  clear_gradients();
}

void Optimizer::clear_gradients() {
  for (Moments& it : all_) it.parameter->value.clear_gradient();
}

std::map<std::string, Tensor> Optimizer::state() const {
  std::map<std::string, Tensor> tensors;
  for (const Moments& it : all_) {
    tensors["weight." + it.name] = it.parameter->value.detach();
    tensors["m." + it.name] = it.m;
    tensors["v." + it.name] = it.v;
  }
  return tensors;
}

}  // namespace fovea
