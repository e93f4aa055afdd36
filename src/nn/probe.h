#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "ops/ops.h"

namespace fovea {

// A place in a model whose value a probe receives.
struct ProbePoint {
  // only: the model has one stack.
  enum class Stack : uint8_t { only, encoder, decoder };
  // hidden: the residual stream before a layer, or, for the layer after the last one, after the
  // final norm, [B, T, C]. unnormed: the residual stream before the final norm. attention,
  // cross_attention: the attention weights, [B, H, T, S].
  enum class What : uint8_t { hidden, unnormed, attention, cross_attention };

  What what = What::hidden;
  int64_t layer = 0;
  Stack stack = Stack::only;

  bool operator==(const ProbePoint&) const = default;
};

// Returns the name of a point in files: "hidden.0", "encoder_attention.3", "cross_attention.3",
// "hidden.unnormed".
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
  // Receives a value, and may replace it by another one of the same shape; replacing attention
  // weights has no effect.
  std::function<void(const ProbePoint& point, Tensor& value)> see = {};
  // Returns whether to compute the attention weights of this point, which `see` then receives. Not
  // called with a cache.
  std::function<bool(const ProbePoint& point)> wants_weights = {};
  // Called for attention without a cache, before the output projection; may overwrite `heads`, for
  // example to switch heads off.
  std::function<void(const ProbePoint& point, const AttentionInputs& inputs)> attend = {};
  // Called for a decoder's self-attention with a cache; `texts` refers to the pages of the keys and
  // values.
  std::function<void(int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
                     const PagedOptions& options)>
      attend_paged = {};
};

}  // namespace fovea
