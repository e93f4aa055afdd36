#include "optim/optimizer.h"

#include <cmath>
#include <numeric>

#include "base/threads.h"

namespace fovea::train {
namespace {

Rule* rule_of(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::adamw: return adamw_rule;
    case OptimizerKind::sgd: return sgd_rule;
    case OptimizerKind::lion: return lion_rule;
    case OptimizerKind::adafactor: return adafactor_rule;
    case OptimizerKind::muon: return muon_rule;
  }
  return adamw_rule;
}

}  // namespace

Optimizer::Optimizer(const std::vector<model::NamedParameter>& parameters,
                     const OptimizerOptions& options)
    : options_(options) {
  for (const auto& [name, parameter] : parameters) add(name, *parameter, *parameter);
}

void Optimizer::add(const std::string& name, nn::Parameter& parameter,
                    const model::Parameter& kind) {
  const uint32_t number = count_++;
  if (!parameter.trainable) return;
  parameter.value.want_gradient();
  Trained& it =
      all_.emplace_back(Trained{name,
                                &parameter,
                                kind.role,
                                number,
                                rule_for(name, kind, options_.choice.kind),
                                moments_of(name, kind, {options_.choice, options_.packed_moments}),
                                {}});
  for (const Moment& moment : it.moments)
    it.values.push_back(zeros(moment.shape, moment.dtype, parameter.value.device()));
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
  const OptimizerOptions& o = options_;
  const float scale = o.clip > 0 && norm > o.clip ? static_cast<float>(o.clip / norm) : 1.0f;
  parallel_tasks(static_cast<int64_t>(all_.size()), [&](int64_t i) {
    const Trained& it = all_[static_cast<size_t>(i)];
    const Tensor gradient = it.parameter->value.gradient();
    if (!gradient) return;
    const RuleStep one{.number = step,
                       .rate = it.role == model::Role::adapter_up ? rate * o.up_rate : rate,
                       .decay = it.parameter->decays ? o.weight_decay : 0,
                       .gradient_scale = scale};
    rule_of(it.rule)(it, gradient, one, o);
  });
  clear_gradients();
}

void Optimizer::clear_gradients() {
  for (const Trained& it : all_) it.parameter->value.clear_gradient();
}

std::map<std::string, Tensor> Optimizer::state() const {
  std::map<std::string, Tensor> tensors;
  for (const Trained& it : all_) {
    tensors["weight." + it.name] = it.parameter->value.detach();
    for (size_t i = 0; i < it.moments.size(); ++i)
      tensors[std::string(it.moments[i].name) + "." + it.name] = it.values[i];
  }
  return tensors;
}

}  // namespace fovea::train
