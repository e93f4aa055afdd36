#include "loop/local_steps.h"

#include <utility>

#include "base/error.h"
#include "parallel/tree_reduce.h"
#include "tensor/in_place.h"
#include "tensor/tensor.h"

namespace fovea::train {
namespace {

constexpr const char* kName = "outer.";  // of u in a snapshot, followed by that of the parameter

// Calls f(parameter, its first element).
void each(const std::vector<model::NamedParameter>& parameters, const auto& f) {
  int64_t begin = 0;
  for (const model::NamedParameter& one : parameters) {
    f(one, begin);
    begin += one.parameter->value.size();
  }
}

}  // namespace

LocalSteps::LocalSteps(const TrainOptions& options,
                       const std::vector<model::NamedParameter>& parameters)
    : ranks_(*options.ranks),
      rate_(static_cast<float>(options.sharing.outer_rate)),
      outer_momentum_(static_cast<float>(options.sharing.outer_momentum)),
      rounds_(options.sharing.gradients == GradientPrecision::bf16),
      rounded_(ranks_) {
  int64_t size = 0;
  for (const model::NamedParameter& one : parameters) {
    if (!one.parameter->trainable) continue;
    parameters_.push_back(one);
    size += one.parameter->value.size();
  }
  weights_ = empty({size});
  momentum_ = zeros({size});
  each(parameters_, [&](const auto& one, int64_t begin) {
    copy_elements(weights_, begin, one.parameter->value, 0, one.parameter->value.size());
  });
}

Tensor LocalSteps::sum_over_ranks(const Tensor& own) {
  RankSummands summands;
  for (int64_t r = 0; r < ranks_.size(); ++r) summands.push_back({r});
  Tensor sum = empty(own.shape());
  TreeReduction reduction(ranks_);
  reduction.begin(summands, {{floats_of(own)}}, floats_of(sum));
  reduction.finish();
  return sum;
}

void LocalSteps::synchronise() {
  Tensor change = copy(weights_);
  each(parameters_, [&](const auto& one, int64_t begin) {
    const Tensor& value = one.parameter->value;
    add_scaled(change.rows(begin, begin + value.size()), value.detach().view({value.size()}), -1);
  });
  change = rounds_ ? rounded_(std::move(change)) : sum_over_ranks(change);
  scale_in_place(change, 1.0 / ranks_.size());
  scale_in_place(momentum_, outer_momentum_);
  add_scaled(momentum_, change, 1);
  add_scaled(weights_, change, -rate_);
  add_scaled(weights_, momentum_, -rate_ * outer_momentum_);
  each(parameters_, [&](const auto& one, int64_t begin) {
    copy_elements(one.parameter->value, 0, weights_, begin, one.parameter->value.size());
  });
}

void LocalSteps::add_state(std::map<std::string, Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("weight.")) continue;
    const Tensor sum = sum_over_ranks(tensor.view({tensor.size()}));
    scale_in_place(sum, 1.0 / ranks_.size());
    copy_elements(tensor, 0, sum, 0, sum.size());
  }
  each(parameters_, [&](const auto& one, int64_t begin) {
    const Tensor& value = one.parameter->value;
    tensors[kName + one.name] = momentum_.rows(begin, begin + value.size()).view(value.shape());
  });
}

void LocalSteps::restore(const model::Snapshot& snapshot) {
  each(parameters_, [&](const auto& one, int64_t begin) {
    const Tensor& value = one.parameter->value;
    const Tensor stored = snapshot.tensors.tensor(kName + one.name);
    check(stored.size() == value.size() && stored.dtype() == DType::f32,
          "{}: {}{} is {} {}; expected fp32 {}", snapshot.path, kName, one.name,
          name_of(stored.dtype()), describe(stored.shape()), describe(value.shape()));
    copy_elements(momentum_, begin, stored, 0, value.size());
    copy_elements(weights_, begin, value, 0, value.size());
  });
}

}  // namespace fovea::train
