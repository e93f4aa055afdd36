#include "train/optimizer.h"

#include <cmath>
#include <numbers>
#include <numeric>

#include "base/math.h"
#include "base/threads.h"

namespace fovea {

Optimizer::Optimizer(Transformer& model, const TrainOptions& options)
    : beta1_(options.beta1),
      beta2_(options.beta2),
      epsilon_(options.epsilon),
      decay_(options.weight_decay),
      clip_(options.clip) {
  model.each([&](const std::string& name, Parameter& p) {
    if (!trains(p.role)) return;
    p.value.want_gradient();
    all_.push_back({name, &p, zeros(p.shape), zeros(p.shape)});
  });
}

double Optimizer::gradient_norm() const {
  // One task a tensor, instead of a fork for each: most are small.
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
      .beta1 = static_cast<float>(beta1_),
      .beta2 = static_cast<float>(beta2_),
      .epsilon = static_cast<float>(epsilon_),
      .correction1 = static_cast<float>(1 - math::pow(beta1_, static_cast<double>(step))),
      .correction2 = static_cast<float>(1 - math::pow(beta2_, static_cast<double>(step))),
      .gradient_scale = clip_ > 0 && norm > clip_ ? static_cast<float>(clip_ / norm) : 1.0f};
  parallel_tasks(static_cast<int64_t>(all_.size()), [&](int64_t i) {
    const Moments& it = all_[static_cast<size_t>(i)];
    const Tensor gradient = it.parameter->value.gradient();
    if (!gradient) return;
    AdamW adamw = common;
    adamw.decay = decays(it.parameter->role) ? static_cast<float>(decay_) : 0.0f;
    kernels(gradient).adamw(it.parameter->value.data_as<float>(), it.m.data_as<float>(),
                            it.v.data_as<float>(), gradient.data_as<float>(), adamw,
                            gradient.size());
  });
  forget_gradients();
}

void Optimizer::forget_gradients() {
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

double learning_rate(const TrainOptions& o, int64_t step) {
  if (step < o.warmup)
    return o.learning_rate * static_cast<double>(step + 1) / static_cast<double>(o.warmup + 1);
  const double last = o.learning_rate * o.final_rate;
  const double done = static_cast<double>(step - o.warmup) /
                      static_cast<double>(std::max<int64_t>(1, o.steps - o.warmup));
  switch (o.schedule) {
    case Schedule::constant: return o.learning_rate;
    case Schedule::inverse_root:
      return o.learning_rate *
             std::sqrt(static_cast<double>(o.warmup + 1) / static_cast<double>(step + 1));
    case Schedule::cosine:  // Loshchilov and Hutter 2017, eq. 5
      return last + 0.5 * (o.learning_rate - last) *
                        (1 + math::cos(std::numbers::pi * std::min(1.0, done)));
    case Schedule::trapezoid: {  // Zhai et al. 2022, section 3.5: flat, then linear to the end
      const double start = static_cast<double>(o.steps) * (1 - o.decay_fraction);
      if (static_cast<double>(step) < start) return o.learning_rate;
      const double fall =
          (static_cast<double>(step) - start) / std::max(1.0, static_cast<double>(o.steps) - start);
      return last + (o.learning_rate - last) * (1 - std::min(1.0, fall));
    }
  }
  return last;
}

}  // namespace fovea
