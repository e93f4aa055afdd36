#include "train/optimizer.h"

#include <cmath>
#include <numeric>

#include "base/math.h"
#include "base/threads.h"

namespace fovea {

Optimizer::Optimizer(const std::vector<NamedParameter>& parameters, const OptimizerOptions& options)
    : options_(options) {
  uint32_t index = 0;
  for (const auto& [name, p] : parameters) {
    const uint32_t number = index++;
    if (!p->trainable) continue;
    p->value.want_gradient();
    const DType stored = options.packed_moments ? DType::u8 : DType::f32;
    const auto moment = [&, &p = p] { return zeros(p->shape, stored, p->device()); };
    Moments& it = all_.emplace_back(Moments{name, p, number, moment(), moment(), {}, {}});
    if (!options.packed_moments) continue;
    const int64_t blocks = (it.m.size() + kMomentBlock - 1) / kMomentBlock;
    for (Tensor* largest : {&it.largest_m, &it.largest_v})
      *largest = zeros({blocks}, DType::f32, p->device());
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
    const Kernels& k = kernels(gradient);
    const Tensor& weight = it.parameter->value;
    if (!options_.packed_moments)
      return k.adamw(weight, it.m, it.v, gradient, adamw, gradient.size());
    k.packed_adamw(weight,
                   {.m = it.m,
                    .v = it.v,
                    .largest_m = it.largest_m,
                    .largest_v = it.largest_v,
                    .seed = options_.seed,
                    .step = static_cast<uint64_t>(step),
                    .parameter = it.index},
                   gradient, adamw, gradient.size());
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
    if (!it.largest_m) continue;
    tensors["largest_m." + it.name] = it.largest_m;
    tensors["largest_v." + it.name] = it.largest_v;
  }
  return tensors;
}

}  // namespace fovea
