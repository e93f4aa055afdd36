#pragma once

#include <span>
#include <variant>

#include "nn/attention.h"
#include "nn/gated_convolution.h"
#include "nn/gated_delta.h"
#include "nn/latent_attention.h"
#include "nn/recurrence.h"
#include "nn/state_space.h"

namespace fovea::model {

// What mixes the tokens of a layer. Each type M has
//
//   M(stack, width, layer, dropout)        `dropout` of its attention weights, if it has any
//   Tensor operator()(x, pass, residual)   x [B, T, C], normalised -> [B, T, C], plus the residual,
//                                          if there is one
//   bool reads_bf16()                      whether x may be bf16, see Linear
//   each(visitor, name)                    its parameters
//   Dropout weight_dropout                 optional: of its attention weights
//   kName, kAttends, cached(), kept_bytes(), flops(): see MixerFacts
//
// A new mixer is a file with its type, and a row of the table in mixer.cc.
using Mixer =
    std::variant<Attention, LatentAttention, Recurrence, GatedDelta, GatedConvolution, StateSpace>;

// What is known about a kind of mixer without its weights.
struct MixerFacts {
  const char* name;  // the part of parameter names
  bool attends;      // has attention weights
  Mixer (*make)(const StackSpec& stack, int64_t width, int64_t layer, const Dropout& weights);
  // What decoding keeps of each token.
  PagePool::Layer (*cached)(const StackSpec& stack, int64_t layer, DType dtype);
  // Bytes that training keeps of each token for the backward pass; `element`: size of the dtype of
  // matrix products.
  double (*kept_bytes)(const StackSpec& stack, int64_t layer, double element);
  // Operations of a layer, besides the products with its matrices, of `tokens` tokens that see
  // `pairs` tokens in all.
  double (*flops)(const StackSpec& stack, double tokens, double pairs);
};
const MixerFacts& mixer_facts(MixerKind kind);
std::span<const MixerFacts> all_mixers();  // by MixerKind

// Returns the layout of the cache of a decoder, with keys and values of `dtype`.
PagePool::Layout page_layout(const StackSpec& decoder, DType dtype);

}  // namespace fovea::model
