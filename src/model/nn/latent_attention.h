#pragma once

#include "cache/page_pool.h"
#include "fovea/model/spec.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/pass.h"

namespace fovea::model {

// Multi-head latent attention (DeepSeek-AI 2024, 2.1). Letters: W width of the latent c of keys and
// values, W' that of the queries' latent, N width of the rotated part of queries and keys, D and D'
// widths of the other part and of values.
//
//   c = norm(latent x)      k_h = [rotate(rotary_key x) | K_h c]      v_h = V_h c
//   q_h = [rotate(first N elements) | the others] of query_up norm(query x), or of query x
//
// Without gradients the only key of all heads is [c | rotate(rotary_key x)], whose first part is
// also the value, and K_h and V_h are applied to queries and results, which gives the same scores
// and sums (2.1.2): q_h . K_h c = (K_h^T q_h) . c. The cache stores only this key.
struct LatentAttention {
  static constexpr const char* kName = "latent";
  static constexpr bool kAttends = true;
  AttentionSpec attention;
  LatentSpec spec;
  Linear query;  // [H (N + D), C], or [W', C]
  Norm query_norm;
  Linear query_up;  // [H (N + D), W']; absent without a latent of the queries
  Linear latent;    // [W, C]
  Norm latent_norm;
  Linear rotary_key;  // [N, C]; absent without rotary positions
  Linear key_up;      // K: [H D, W]
  Linear value_up;    // V: [H D', W]
  Linear output;      // [C, H D']
  int64_t layer = 0, window = 0;
  Dropout weight_dropout;  // probability and substream of the dropout of the attention weights
  Tensor head_factors;     // [H D'], factors of the outputs of the heads; empty = all 1

  LatentAttention() = default;
  LatentAttention(const StackSpec& stack, int64_t width, int64_t layer, Dropout weight_dropout);
  // See MixerFacts.
  static PagePool::Layer cached(const StackSpec& stack, int64_t layer, DType dtype);
  static double kept_bytes(const StackSpec& stack, int64_t layer, double element);
  static double flops(const StackSpec& stack, double tokens, double pairs);

  // x [B, T, C] -> [B, T, C]; plus the residual, if there is one.
  Tensor operator()(const Tensor& x, const LayerPass& pass, const Tensor& residual = {}) const;
  static bool reads_bf16() { return false; }
  // Returns the latent c of keys and values.   x [B, T, C] -> [B, T, W]
  Tensor latent_of(const Tensor& x, const LayerPass& pass) const {
    return latent_norm(latent(x, pass), pass.compute);
  }

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    query.each(f, name + ".query");
    query_norm.each(f, name + ".query_norm");
    query_up.each(f, name + ".query_up");
    latent.each(f, name + ".latent");
    latent_norm.each(f, name + ".latent_norm");
    rotary_key.each(f, name + ".rotary_key");
    key_up.each(f, name + ".key_up");
    value_up.each(f, name + ".value_up");
    output.each(f, name + ".output");
  }

 private:
  Tensor queries(const Tensor& x, const LayerPass& pass) const;
  Tensor expanded(const Tensor& q, const Tensor& c, const Tensor& rotated,
                  const LayerPass& pass) const;
  Tensor absorbed(const Tensor& q, const Tensor& c, const Tensor& rotated,
                  const LayerPass& pass) const;
  Tensor from_cache(const Tensor& latent_query, const Tensor& latent_key,
                    const LayerPass& pass) const;
  AttentionOptions attention_options(const LayerPass& pass) const;
  float score_scale() const;
};

}  // namespace fovea::model
