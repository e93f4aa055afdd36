#include "nn/latent_attention.h"

#include <cmath>

#include "base/error.h"
#include "tensor/tape.h"

namespace fovea::model {
namespace {

NormSpec norm_of_latents(const StackSpec& stack) {
  NormSpec norm = stack.norm;
  norm.epsilon = stack.latent.epsilon;
  return norm;
}

}  // namespace

LatentAttention::LatentAttention(const StackSpec& stack, int64_t width, int64_t layer_,
                                 Dropout dropout)
    : attention(stack.attention),
      spec(stack.latent),
      query_norm(norm_of_latents(stack), spec.query_width, spec.query_width > 0),
      latent(width, spec.width, false),
      latent_norm(norm_of_latents(stack), spec.width),
      key_up(spec.width, attention.heads * attention.head_width, false, Role::head_matrix),
      value_up(spec.width, attention.heads * attention.value_width, false, Role::head_matrix),
      output(attention.heads * attention.value_width, width, attention.output_bias,
             Role::residual_matrix),
      layer(layer_),
      window(window_of(attention, layer_)),
      weight_dropout(dropout) {
  const int64_t queries = attention.heads * (spec.rotary + attention.head_width);
  query = Linear(width, spec.query_width > 0 ? spec.query_width : queries, false);
  if (spec.query_width > 0) query_up = Linear(spec.query_width, queries, false);
  if (spec.rotary > 0) rotary_key = Linear(width, spec.rotary, false);
}

// The key of all heads, whose first elements are the value.
PagePool::Layer LatentAttention::cached(const StackSpec& stack, int64_t layer, DType dtype) {
  return {.keys = {1, stack.latent.width + stack.latent.rotary, dtype},
          .values = {},
          .reach = Reach::of(stack.attention, layer)};
}

// As attention, whose keys and values belong to all heads, and each latent before and after its
// norm.
double LatentAttention::kept_bytes(const StackSpec& stack, int64_t, double element) {
  const AttentionSpec& a = stack.attention;
  const LatentSpec& l = stack.latent;
  const int64_t of_head = 2 * (l.rotary + a.head_width) + 2 * a.value_width;
  return element * static_cast<double>(a.heads * of_head + 2 * (l.width + l.query_width)) +
         4 * static_cast<double>(a.heads);
}

double LatentAttention::flops(const StackSpec& stack, double, double pairs) {
  const AttentionSpec& a = stack.attention;
  return pairs * 2 *
         static_cast<double>(a.heads * (a.head_width + stack.latent.rotary + a.value_width));
}

float LatentAttention::score_scale() const {
  if (attention.scale > 0) return attention.scale;
  return 1.0f / std::sqrt(static_cast<float>(spec.rotary + attention.head_width));
}

Tensor LatentAttention::queries(const Tensor& x, const LayerPass& pass) const {
  Tensor q = query(x, pass);
  if (query_up.weight.present()) q = query_up(query_norm(q, pass.compute), pass);
  q = q.view({x.dim(0), x.dim(1), attention.heads, spec.rotary + attention.head_width});
  if (spec.rotary == 0) return q;
  return rotate(q, pass.latent_angles.cosines, pass.latent_angles.sines, pass.pairing);
}

Tensor LatentAttention::operator()(const Tensor& x, const LayerPass& pass,
                                   const Tensor& residual) const {
  const int64_t B = x.dim(0), T = x.dim(1);
  const Tensor q =
      probed(pass, ProbePoint::What::query, layer, queries(x, pass));  // [B, T, H, N + D]
  const Tensor c = probed(pass, ProbePoint::What::latent, layer, latent_of(x, pass));  // [B, T, W]
  Tensor rotated;  // [B, T, 1, N]
  if (spec.rotary > 0)
    rotated = rotate(rotary_key(x, pass).view({B, T, 1, spec.rotary}), pass.latent_angles.cosines,
                     pass.latent_angles.sines, pass.pairing);
  const bool shown = pass.probe != nullptr && (pass.probe->attend || pass.probe->wants_weights);
  const bool expands = pass.cache == nullptr && (recording() || shown);
  const Tensor heads =  // [B, T, H, D']
      probed(pass, ProbePoint::What::heads, layer,
             scaled_heads(expands ? expanded(q, c, rotated, pass) : absorbed(q, c, rotated, pass),
                          head_factors));
  const Tensor y = output(heads.view({B, T, attention.heads * attention.value_width}), pass);
  return residual ? add(residual, y) : y;
}

AttentionOptions LatentAttention::attention_options(const LayerPass& pass) const {
  AttentionOptions options;
  options.scale = score_scale();
  options.softcap = attention.softcap;
  options.mask = masked(pass, attention, window);
  options.bias = pass.distance_bias;
  options.dropout = pass.dropout_at(weight_dropout.probability, weight_dropout.substream);
  return options;
}

// Attention with the keys and values of each head.
Tensor LatentAttention::expanded(const Tensor& q, const Tensor& c, const Tensor& rotated,
                                 const LayerPass& pass) const {
  const int64_t B = q.dim(0), T = q.dim(1), H = attention.heads;
  const Tensor own = key_up(c, pass).view({B, T, H, attention.head_width});
  const Tensor k = probed(pass, ProbePoint::What::key, layer,
                          spec.rotary > 0 ? concat_shared(rotated, own) : own);
  const Tensor v = probed(pass, ProbePoint::What::value, layer,
                          value_up(c, pass).view({B, T, H, attention.value_width}));
  return attend(q, k, v, attention_options(pass), pass, layer, pass.stack);
}

// Attention with one key for all heads, whose first elements are also the value.
Tensor LatentAttention::absorbed(const Tensor& q, const Tensor& c, const Tensor& rotated,
                                 const LayerPass& pass) const {
  check(!key_up.adapter.present() && !value_up.adapter.present(),
        "latent attention: key_up or value_up has an adapter; expected none in decoding");
  const int64_t B = q.dim(0), T = q.dim(1), H = attention.heads, W = spec.width, N = spec.rotary;
  const Kernels& k = kernels(q);
  const Tensor latent_key = empty({B, T, 1, W + N}, q.dtype(), q.device());    // [c | rotated]
  const Tensor latent_query = empty({B, T, H, W + N}, q.dtype(), q.device());  // [K^T q | rotated]
  k.copy_columns(latent_key, c, {B * T, W, W, 0, W + N, 0});
  k.copy_columns(latent_query, linear_by_head(q, N, key_up.weight.value, true),
                 {B * T * H, W, W, 0, W + N, 0});
  if (N > 0) {
    k.copy_columns(latent_key, rotated, {B * T, N, N, 0, W + N, W});
    k.copy_columns(latent_query, q, {B * T * H, N, N + attention.head_width, 0, W + N, W});
  }
  const Tensor mixed = pass.cache == nullptr  // [B, T, H, W]
                           ? fovea::attention(latent_query, latent_key, c.view({B, T, 1, W}),
                                              attention_options(pass))
                           : from_cache(latent_query, latent_key, pass);
  return linear_by_head(mixed, 0, value_up.weight.value, false);
}

Tensor LatentAttention::from_cache(const Tensor& latent_query, const Tensor& latent_key,
                                   const LayerPass& pass) const {
  KvCache& cache = *pass.cache;
  cache.append(layer, latent_key, {});
  const std::vector<PagedText> texts = cache.spans(layer, masked(pass, attention, window));
  PagedOptions options;
  options.kv_heads = 1;
  options.value_width = spec.width;
  options.values_in_keys = true;
  options.pages = cache.layout().dtype;
  options.scale = score_scale();
  options.softcap = attention.softcap;
  options.bias = pass.distance_bias;
  options.bias_zero = pass.bias_zero;
  if (pass.probe != nullptr && pass.probe->attend_paged)
    pass.probe->attend_paged(layer, latent_query, texts, options);
  return attention_paged(latent_query, texts, options);
}

}  // namespace fovea::model
