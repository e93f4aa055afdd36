#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "nn/parameter.h"
#include "ops/ops.h"

namespace fovea::model {

// A point in a model whose value a probe receives. Letters: B batch, T tokens, S keys, H heads, G
// key-value heads, D and D' widths of keys and values, C width of the residual stream, F width of
// the feed-forward layer, W width of a state or of a latent.
struct ProbePoint {
  // only: the model has one stack. cross: cross-attention of the decoder to the encoder's output.
  enum class Stack : uint8_t { only, encoder, decoder, cross };
  enum class What : uint8_t {
    embedding,    // input of the stack, before positions, [B, T, C]
    hidden,       // the residual stream before a layer, or, for the layer after the last one, after
                  // the final norm, [B, T, C]
    unnormed,     // the residual stream before the final norm, [B, T, C]
    mixer_input,  // after the norm, [B, T, C]
    query,        // after norm and rotation, as attention uses it, [B, T, H, D]
    key,          // [B, S, G, D]
    value,        // [B, S, G, D']
    latent,       // c of latent attention, after its norm, [B, T, W]
    scores,       // inputs of the softmax, [B, H, T, S]; -inf where masked
    attention,    // attention weights, [B, H, T, S]
    heads,        // outputs of the heads, before the output projection, [B, T, H, D']
    gates,        // the input's part of the gates of a recurrence, [B, T, gates * W]
    state,        // states h of a recurrence, [B, T, W]
    mixer_unnormed,  // output of the mixer before its output norm, if it has one, [B, T, C]
    mixer_output,    // what the mixer adds to the residual stream, [B, T, C]
    mixer_sum,       // the residual stream plus the mixer before the norm of the sum, if any
    hidden_mid,      // the residual stream after the mixer, [B, T, C]
    mlp_input,       // of the feed-forward layer, after the norm, [B, T, C]
    mlp_pre,         // before the activation; not in a layer of experts, [B, T, F]
    mlp_hidden,      // after it and, if gated, the product; not in a layer of experts, [B, T, F]
    mlp_unnormed,    // as mixer_unnormed, of the feed-forward layer
    mlp_output,      // what the feed-forward layer adds to the residual stream, [B, T, C]
    mlp_sum,         // as mixer_sum, of the feed-forward layer
    logits,          // output of the head
  };

  What what = What::hidden;
  int64_t layer = 0;
  Stack stack = Stack::only;

  bool operator==(const ProbePoint&) const = default;
};

// Returns the name of a point in files: "hidden.0", "encoder_attention.3", "cross_attention.3",
// "hidden.unnormed", "logits".
std::string name_of(const ProbePoint& point);

// Inputs and output of one attention call: q [B, T, H, D], k [B, S, G, D], v [B, S, G, D'], the
// options, and the output of each head [B, T, H, D'].
struct AttentionInputs {
  const Tensor &q, &k, &v;
  const AttentionOptions& options;
  const Tensor& heads;
};

// Callbacks for inspection; a null callback is not called.
struct Probe {
  // Receives a value, and may replace it by another tensor of the same shape and dtype.
  std::function<void(const ProbePoint& point, Tensor& value)> see = {};
  // Returns whether to compute the scores or the attention weights of this point, which `see` then
  // receives. Not called with a cache.
  std::function<bool(const ProbePoint& point)> wants_weights = {};
  // Called for attention without a cache, before the output projection, with the point of the
  // attention weights; may overwrite `heads`, for example to switch heads off.
  std::function<void(const ProbePoint& point, const AttentionInputs& inputs)> attend = {};
  // Called for a decoder's self-attention with a cache; `texts` refers to the pages of the keys and
  // values.
  std::function<void(int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
                     const PagedOptions& options)>
      attend_paged = {};
  // Receives the input of each product with the matrix of a layer: x [..., in]. Not called for
  // routers, shared experts and the head.
  std::function<void(const Parameter& weight, const Tensor& x)> product = {};
};

}  // namespace fovea::model
