#include "nn/ffn.h"

#include <algorithm>

namespace fovea {
namespace {

// The public enum and the enum of the kernels have the same values.
static_assert(
    static_cast<int>(ActivationKind::relu) == static_cast<int>(Activation::relu) &&
    static_cast<int>(ActivationKind::gelu) == static_cast<int>(Activation::gelu) &&
    static_cast<int>(ActivationKind::gelu_tanh) == static_cast<int>(Activation::gelu_tanh) &&
    static_cast<int>(ActivationKind::silu) == static_cast<int>(Activation::silu) &&
    static_cast<int>(ActivationKind::tanh) == static_cast<int>(Activation::tanh) &&
    static_cast<int>(ActivationKind::quick_gelu) == static_cast<int>(Activation::quick_gelu) &&
    static_cast<int>(ActivationKind::relu_squared) == static_cast<int>(Activation::relu_squared) &&
    static_cast<int>(ActivationKind::sigmoid) == static_cast<int>(Activation::sigmoid));

bool is_dense(const ExpertsSpec& experts, int64_t layer) {
  const auto& dense = experts.dense_layers;
  return experts.count == 0 || std::find(dense.begin(), dense.end(), layer) != dense.end();
}

}  // namespace

FeedForward::FeedForward(const StackSpec& stack, int64_t width, int64_t layer_)
    : spec(stack.ffn.experts),
      kind(static_cast<Activation>(stack.ffn.activation)),
      gated(stack.ffn.gated),
      layer(layer_) {
  const auto make = [&](int64_t inner, Linear& g, Linear& u, Linear& d) {
    if (gated) g = Linear(width, inner, stack.ffn.bias);
    u = Linear(width, inner, stack.ffn.bias);
    d = Linear(inner, width, stack.ffn.bias, Role::residual_matrix);
  };
  if (is_dense(spec, layer)) {
    make(stack.ffn.width, gate, up, down);
    return;
  }
  router = Linear(width, spec.count, false);
  experts.resize(static_cast<size_t>(spec.count));
  for (Expert& expert : experts) make(spec.width, expert.gate, expert.up, expert.down);
}

Tensor FeedForward::operator()(const Tensor& x, const Pass& pass) const {
  if (!experts.empty()) return mix(x, pass);
  if (gated) {
    const auto [g, u] = all_of(x, gate, up);
    return down(
        probed(pass, ProbePoint::What::mlp_hidden, layer,
               gated_activation(probed(pass, ProbePoint::What::mlp_pre, layer, g), u, kind)));
  }
  return down(probed(pass, ProbePoint::What::mlp_hidden, layer,
                     activation(probed(pass, ProbePoint::What::mlp_pre, layer, up(x)), kind)));
}

// Sorts tokens by expert, so that each matrix of an expert needs one product for all of its tokens.
Tensor FeedForward::mix(const Tensor& x, const Pass& pass) const {
  const int64_t R = x.size() / x.dim(-1), C = x.dim(-1);
  const Tensor tokens = x.view({R, C});
  const DType exact = x.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor logits = linear(tokens, router.weight, router.bias, exact);  // [R, E]
  const Routing routing = route(logits, spec.chosen, spec.normalise);       // [R, k]
  const Groups groups = group_by_expert(routing.experts, spec.count);
  if (pass.side_losses != nullptr && spec.balance > 0)
    pass.side_losses->push_back(scale(balance_loss(logits, routing.experts), spec.balance));

  const auto through = [&](const Tensor& y, Linear Expert::*part) {
    std::vector<Tensor> weights, biases;
    std::vector<PackedWeight> packed;
    for (const Expert& expert : experts) {
      const Parameter& weight = (expert.*part).weight;
      if (weight.packed)
        packed.push_back(weight.packed);
      else
        weights.push_back(weight.value);
      if ((expert.*part).bias.present()) biases.push_back((expert.*part).bias.value);
    }
    return packed.empty() ? grouped_linear(y, groups.counts, weights, biases)
                          : grouped_linear(y, groups.counts, packed, biases);
  };
  const Tensor sorted = gather(groups.rows, tokens);  // [R k, C]
  const Tensor first = through(sorted, gated ? &Expert::gate : &Expert::up);
  const Tensor inner =
      gated ? gated_activation(first, through(sorted, &Expert::up), kind) : activation(first, kind);
  const Tensor y =
      combine(through(inner, &Expert::down), groups.places, routing.weights);  // [R, C]
  return cast(y, x.dtype()).view(x.shape());
}

}  // namespace fovea
