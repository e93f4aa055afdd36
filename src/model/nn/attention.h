#pragma once

#include "cache/page_pool.h"
#include "fovea/model/spec.h"
#include "nn/norm.h"
#include "nn/packed_linear.h"
#include "nn/pass.h"

namespace fovea::model {

// Attention with H heads over G key-value heads (Vaswani et al. 2017; G < H: Ainslie et al. 2023):
// self-attention, or with `across` cross-attention to the encoder's output.
struct Attention {
  static constexpr const char* kName = "attention";
  static constexpr bool kAttends = true;
  AttentionSpec spec;
  Linear query, key, value, output;
  Linear gate;  // of the outputs of the heads, if they are gated
  DisentangledSpec disentangled;
  Linear distance_query, distance_key;  // of the vectors of distances, unless `query` and `key` are
  Norm query_norm, key_norm, heads_norm;
  Parameter query_gains, key_gains;  // QueryKeyNorm::each: [H, D], [G, D]
  Parameter sinks;                   // [H]
  int64_t layer = 0, window = 0;
  bool across = false;
  bool rotates = true;     // queries and keys, if the stack has rotary positions
  Dropout weight_dropout;  // probability and substream of the dropout of the attention weights
  Tensor head_factors;     // [H D'], factors of the outputs of the heads; empty = all 1

  Attention() = default;
  Attention(const StackSpec& stack, int64_t width, int64_t layer, Dropout weight_dropout,
            bool across = false);
  // See MixerFacts.
  static PagePool::Layer cached(const StackSpec& stack, int64_t layer, DType dtype);
  static double kept_bytes(const StackSpec& stack, int64_t layer, double element);
  static double flops(const StackSpec& stack, double tokens, double pairs);

  // x [B, T, C] -> [B, T, C]; plus the residual, if there is one.
  Tensor operator()(const Tensor& x, const LayerPass& pass, const Tensor& residual = {}) const;

  // Whether x may be bf16, see Linear.
  bool reads_bf16() const {
    return model::reads_bf16(query) && model::reads_bf16(key) && model::reads_bf16(value) &&
           model::reads_bf16(output);
  }

  // Returns the angles by which the layer rotates its queries and its keys.
  const Angles& query_angles(const LayerPass& pass) const;
  const Angles& key_angles(const LayerPass& pass) const;

  struct KeysValues {
    Tensor keys, values;  // [B, S, G, D], [B, S, G, D']
  };
  // Returns the keys and values of cross-attention, which are the same in every step of decoding.
  KeysValues of_memory(const Tensor& memory, const LayerPass& pass) const;  // memory [B, S, C]

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    query.each(f, name + ".query");
    key.each(f, name + ".key");
    value.each(f, name + ".value");
    query_norm.each(f, name + ".query_norm");
    key_norm.each(f, name + ".key_norm");
    visit(f, name + ".query_norm.weight", query_gains);
    visit(f, name + ".key_norm.weight", key_gains);
    visit(f, name + ".sinks", sinks);
    heads_norm.each(f, name + ".heads_norm");
    gate.each(f, name + ".gate");
    output.each(f, name + ".output");
    distance_query.each(f, name + ".distance_query");
    distance_key.each(f, name + ".distance_key");
  }

 private:
  Tensor heads_of(const Tensor& projected, const Norm& norm, const Parameter& gains, int64_t heads,
                  const Angles& angles, const LayerPass& pass) const;
  Tensor normed_heads(const Tensor& heads) const;
  Tensor self_attention(const Tensor& x, const LayerPass& pass) const;
  Tensor cross_attention(const Tensor& x, const LayerPass& pass) const;
  Tensor terms_of_distances(const Tensor& q, const Tensor& k, const LayerPass& pass) const;
  Tensor with_first_values(const Tensor& values, const LayerPass& pass) const;
  Tensor attend_to(const Tensor& q, const KeysValues& kv, AttentionOptions options,
                   const LayerPass& pass) const;
  PagedOptions paged(const KvCache& cache) const;
  float score_scale() const;
  Tensor probed(const LayerPass& pass, ProbePoint::What what, Tensor found) const;
  ProbePoint::Stack stack_of(const LayerPass& pass) const {
    return across ? ProbePoint::Stack::cross : pass.stack;
  }
};

}  // namespace fovea::model
