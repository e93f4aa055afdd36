#pragma once

#include <utility>
#include <vector>

#include "cache/kv_cache.h"
#include "fovea/model/spec.h"
#include "nn/probe.h"
#include "ops/ops.h"
#include "spec/mixers.h"

namespace fovea::model {

// The rotation angles of queries and keys: cos and sin f32 [T or B*T, R/2]; empty = no rotation.
struct Angles {
  Tensor cosines, sines;
};

// The rows of a pass that use one of the alternative adapters of the layers; see
// Linear::alternatives.
struct AdaptedRows {
  size_t adapter = 0;  // index in Linear::alternatives
  Tensor rows;         // i32 [n], ascending, on the host
};

// What the caller of a model gives to one forward pass.
struct Pass {
  // dtype of the matrix products and of what sublayers add to the residual stream, which stays f32.
  // In inference, products whose packed weights are bf16 have operands of bf16 with f32 too.
  DType compute = DType::f32;
  Mask mask;                 // mask of the self-attention
  KvCache* cache = nullptr;  // decoding: keys and values of earlier passes
  const Probe* probe = nullptr;
  Dropout dropout;  // seed, step and units of this pass; dropout_at() sets the rest
  bool training = false;
  // Limits the windows of all layers, as in Mask; 0 = no limit. Not with a cache.
  int64_t window = 0;
  // The number of blocks of a stack, from the first, that keep only their inputs for the backward
  // pass; -1 = all.
  int64_t recompute = 0;
  bool recomputes(int64_t layer) const { return recompute < 0 || layer < recompute; }

  // The encoder's output, for a decoder's cross-attention: [B, S, C] in `compute`, and per batch
  // row the interval that is not padding (empty = all).
  Tensor memory;
  std::vector<Interval> memory_valid;
  // Inference: the rows of x [..., C] that do not use the layers' weights alone. Each row occurs at
  // most once.
  std::vector<AdaptedRows> adapted_rows;
  // Collects the losses that layers add to the model's loss; may be null.
  std::vector<Tensor>* side_losses = nullptr;
  ProbePoint::Stack stack = ProbePoint::Stack::only;  // of the points that a probe sees

  // Returns the dtype of what a sublayer adds, whose last product has operands of this dtype.
  DType added_type(DType operands) const { return operands == DType::bf16 ? compute : operands; }

  // Returns the dropout of one substream.
  Dropout dropout_at(float probability, uint32_t substream) const {
    Dropout here = dropout;
    here.probability = training ? probability : 0;
    here.substream = substream;
    return here;
  }
};

// The pass of a stack's layers: what the stack computes once for all of them.
struct LayerPass : Pass {
  LayerPass() = default;
  explicit LayerPass(const Pass& pass) : Pass(pass) {}

  Angles angles, local_angles;  // local_angles: for layers with a window
  Angles latent_angles;         // for latent attention
  Angles query_angles;          // of queries that grow with their position; empty = as keys
  Pairing pairing = Pairing::halves;
  Tensor distance_bias;  // see AttentionOptions; with a cache, PagedOptions
  int64_t bias_zero = 0;
  // Of disentangled attention: the vectors of distances in `compute`, a table for each unit [U, R,
  // C], and the row of each distance query - key, from -(T - 1) on, i32 [2T - 1].
  Tensor distances, distance_rows;
  // For value_residual: the values of the first attention layer [B, T, G, D'], or the tensor where
  // that layer puts them.
  Tensor first_values;
  Tensor* new_values = nullptr;
};

// Substreams of dropout. In each stack, the first one is that of the embeddings, followed by three
// per layer: its attention weights and its two sublayers. The two per layer of
// cross-attention, those of low-rank adapters, and that of the vectors of distances have separate
// ranges.
enum class Sublayer : uint32_t { attention_weights, attention, ffn };
constexpr uint32_t kSubstreamsPerLayer = 3;
inline uint32_t dropout_substream(uint32_t first_substream, int64_t layer, Sublayer which) {
  return first_substream + 1 + kSubstreamsPerLayer * static_cast<uint32_t>(layer) +
         static_cast<uint32_t>(which);
}
constexpr uint32_t kDecoderSubstreams = 0, kCrossSubstreams = 1 << 16, kEncoderSubstreams = 2 << 16,
                   kAdapterSubstreams = 3 << 16, kDistanceSubstream = 4 << 16;

// Returns the value of a point, which a probe may read and replace.
inline Tensor probed(const Pass& pass, const ProbePoint& point, Tensor value) {
  if (pass.probe != nullptr && pass.probe->see) pass.probe->see(point, value);
  return value;
}
inline Tensor probed(const Pass& pass, ProbePoint::What what, int64_t layer, Tensor value) {
  return probed(pass, ProbePoint{what, layer, pass.stack}, std::move(value));
}

inline void probe_product(const Pass& pass, const Parameter& weight, const Tensor& x) {
  if (pass.probe != nullptr && pass.probe->product) pass.probe->product(weight, x);
}

// The mask of self-attention in a layer with this window.
inline Mask masked(const Pass& pass, const AttentionSpec& spec, int64_t window) {
  Mask mask = pass.mask;
  mask.window = pass.window > 0 && (window == 0 || pass.window < window) ? pass.window : window;
  mask.global = mask.window > 0 ? spec.global : 0;
  return mask;
}

// Returns the outputs of heads times their factors [H D]; empty = all 1.   [B, T, H, D] -> the same
Tensor scaled_heads(const Tensor& heads, const Tensor& factors);

// Attention, whose scores and weights a probe may read and replace. `layer` and `stack` are those
// of the point.   q [B, T, H, D], k [B, S, G, D], v [B, S, G, D'] -> [B, T, H, D']
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& options,
              const Pass& pass, int64_t layer, ProbePoint::Stack stack);

}  // namespace fovea::model
