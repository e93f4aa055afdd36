#pragma once

#include <variant>

#include "nn/attention.h"
#include "nn/latent_attention.h"
#include "nn/recurrence.h"

namespace fovea::model {

// What mixes the tokens of a layer. Each type M has
//
//   Tensor operator()(x, pass, residual)   x [B, T, C], normalised -> [B, T, C], plus the residual,
//                                          if there is one
//   bool reads_bf16()                      whether x may be bf16, see Linear
//   Dropout place                          optional: of its attention weights
//   each(visitor, name), kName             its parameters, and its part of their names
using Mixer = std::variant<Attention, LatentAttention, Recurrence>;

// Returns the mixer of a layer.
Mixer make_mixer(const StackSpec& stack, int64_t width, int64_t layer, const Dropout& weights);

}  // namespace fovea::model
