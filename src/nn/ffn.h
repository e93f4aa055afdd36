#pragma once

#include "fovea/spec.h"
#include "nn/linear.h"

namespace fovea {

// y = down(f(up(x))), or gated: y = down(f(gate(x)) * up(x)) (Shazeer 2020).
// x [..., C] -> [..., C]
struct FeedForward {
  Linear gate, up, down;
  Activation kind = Activation::gelu_tanh;
  bool gated = false;

  FeedForward() = default;
  FeedForward(const FeedForwardSpec& spec, int64_t width)
      : gate(spec.gated ? Linear(width, spec.width, spec.bias) : Linear()),
        up(width, spec.width, spec.bias),
        down(spec.width, width, spec.bias, Role::residual_matrix),
        kind(static_cast<Activation>(spec.activation)),
        gated(spec.gated) {}

  Tensor operator()(const Tensor& x) const {
    if (gated) return down(multiply(activation(gate(x), kind), up(x)));
    return down(activation(up(x), kind));
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    gate.each(f, name + ".gate");
    up.each(f, name + ".up");
    down.each(f, name + ".down");
  }
};

// The public names and the kernels' are the same list.
static_assert(
    static_cast<int>(ActivationKind::relu) == static_cast<int>(Activation::relu) &&
    static_cast<int>(ActivationKind::gelu) == static_cast<int>(Activation::gelu) &&
    static_cast<int>(ActivationKind::gelu_tanh) == static_cast<int>(Activation::gelu_tanh) &&
    static_cast<int>(ActivationKind::silu) == static_cast<int>(Activation::silu) &&
    static_cast<int>(ActivationKind::tanh) == static_cast<int>(Activation::tanh) &&
    static_cast<int>(ActivationKind::quick_gelu) == static_cast<int>(Activation::quick_gelu) &&
    static_cast<int>(ActivationKind::relu_squared) == static_cast<int>(Activation::relu_squared) &&
    static_cast<int>(ActivationKind::sigmoid) == static_cast<int>(Activation::sigmoid));

}  // namespace fovea
