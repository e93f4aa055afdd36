#pragma once

#include <string>
#include <utility>

#include "fovea/nn/parameter.h"
#include "ops/packed.h"

namespace fovea::model {

// The kind of a parameter: determines its initialisation, whether weight decay applies, and whether
// it is trained by default; see is_trained().
enum class Role {
  matrix,
  residual_matrix,
  head_matrix,  // of latent attention, applied head by head in decoding
  token_embedding,
  position_embedding,
  gain,
  gain_minus_one,
  tanh_scale,      // alpha of DyT
  positive_slope,  // of xIELU
  negative_slope,
  linear_slope,
  least_argument,
  layer_scale,  // factors of a sublayer's output
  convolution,  // of single columns over the last tokens
  decay_rate,   // of linear attention: the logarithms of the rates
  decay_step,   // and the biases of the steps
  bias,
  selection_bias,  // of a router
  sinusoids,
  adapter_down,  // A of a low-rank adapter
  adapter_up,    // B
  magnitude      // of DoRA
};

inline bool is_of_adapter(Role role) {
  return role == Role::adapter_down || role == Role::adapter_up || role == Role::magnitude;
}

inline bool decays(Role role) {
  return role == Role::matrix || role == Role::residual_matrix || role == Role::head_matrix ||
         role == Role::token_embedding || role == Role::adapter_down || role == Role::adapter_up;
}

inline bool is_trained(Role role) {
  return role != Role::sinusoids && role != Role::selection_bias && role != Role::linear_slope &&
         role != Role::least_argument;
}

// A parameter as its layer declares it; the shape is known before the elements exist. An empty
// shape means that the layer has no such parameter. A task may change `trainable` before the
// optimiser is created: whether an optimiser updates it and a snapshot stores it.
struct Parameter : nn::Parameter {
  Shape shape;
  Role role = Role::matrix;
  PackedWeight packed;  // instead of `value`, for inference or as frozen weights
  // A matrix of a product that rounds it by round_ternary(), and its input by round_rows(). Packed
  // weights are rounded already.
  bool ternary = false;

  Parameter() = default;
  Parameter(const Shape& extents, Role kind, Tensor elements = {})
      : nn::Parameter{std::move(elements), is_trained(kind), model::decays(kind)},
        shape(extents),
        role(kind) {}

  bool present() const { return !shape.empty(); }
  const Device& device() const { return packed ? packed.device() : value.device(); }
};

struct NamedParameter {
  std::string name;
  Parameter* parameter;
};

// The each(f) members of the layers use this function. Calls f(name, parameter) if the layer has
// the parameter.
template <class Visitor>
void visit(Visitor& f, const std::string& name, Parameter& parameter) {
  if (parameter.present()) f(name, parameter);
}

}  // namespace fovea::model
