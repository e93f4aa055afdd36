#include "optim/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/threads.h"
#include "kernels/sum_block.h"
#include "ops/common.h"

namespace fovea::train {
namespace {

constexpr int64_t kBlocksAtOnce = 16;  // of a gradient, on one thread

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

std::vector<std::vector<double>> Optimizer::block_squares() const {
  struct Block {
    Tensor gradient;
    int64_t begin;
    double* square;
  };
  std::vector<std::vector<double>> squares(all_.size());
  std::vector<Block> blocks;
  for (size_t i = 0; i < all_.size(); ++i) {
    const Tensor gradient = all_[i].parameter->value.gradient();
    if (!gradient) continue;
    squares[i].resize(static_cast<size_t>((gradient.size() + kSumBlock - 1) / kSumBlock));
    for (double& square : squares[i])
      blocks.push_back({gradient, (&square - squares[i].data()) * kSumBlock, &square});
  }
  parallel_for(std::ssize(blocks), kBlocksAtOnce, [&](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const auto& [gradient, first, square] = blocks[static_cast<size_t>(n)];
      const int64_t size = std::min(kSumBlock, gradient.size() - first);
      *square = kernels(gradient).sum_of_squares(at(In(gradient), first), size);
    }
  });
  return squares;
}

double Optimizer::gradient_norm() const {
  double sum = 0;
  for (const std::vector<double>& squares : block_squares())
    sum += std::accumulate(squares.begin(), squares.end(), 0.0);
  return std::sqrt(sum);
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
