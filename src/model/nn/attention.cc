#include "nn/attention.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace fovea::model {
namespace {

Norm norm_of(const StackSpec& stack, int64_t heads) {
  const int64_t D = stack.attention.head_width;
  const QueryKeyNorm kind = stack.attention.norm;
  NormSpec norm = stack.norm;
  if (kind == QueryKeyNorm::each) norm.gain = false;
  return Norm(norm, kind == QueryKeyNorm::all ? heads * D : D, kind != QueryKeyNorm::none);
}

Parameter gains_of(const AttentionSpec& spec, int64_t heads) {
  const bool own = spec.norm == QueryKeyNorm::each;
  return {own ? Shape{heads, spec.head_width} : Shape{}, Role::gain, {}};
}

bool is_rotated(const StackSpec& stack, int64_t layer) {
  const auto& unrotated = stack.position.rotary.unrotated;
  return std::find(unrotated.begin(), unrotated.end(), layer) == unrotated.end();
}

}  // namespace

Attention::Attention(const StackSpec& stack, int64_t width, int64_t layer_, Dropout dropout,
                     bool across_)
    : spec(stack.attention),
      query(width, spec.heads * spec.head_width, spec.bias),
      key(width, spec.kv_heads * spec.head_width, spec.bias && spec.key_bias),
      value(width, spec.kv_heads * spec.value_width, spec.bias),
      output(spec.heads * spec.value_width, width, spec.output_bias, Role::residual_matrix),
      disentangled(stack.position.disentangled),
      query_norm(norm_of(stack, spec.heads)),
      key_norm(norm_of(stack, spec.kv_heads)),
      heads_norm(stack.norm, spec.heads * spec.value_width, spec.heads_norm),
      query_gains(gains_of(spec, spec.heads)),
      key_gains(gains_of(spec, spec.kv_heads)),
      sinks{spec.sinks ? Shape{spec.heads} : Shape{}, Role::bias, {}},
      layer(layer_),
      window(window_of(spec, layer_)),
      across(across_),
      rotates(is_rotated(stack, layer_)),
      weight_dropout(dropout) {
  if (spec.gated) gate = Linear(width, spec.heads * spec.value_width, spec.bias);
  if (stack.position.bias != DistanceBias::disentangled || disentangled.shared || across) return;
  const int64_t wide = spec.heads * spec.head_width;
  if (disentangled.position_to_content) distance_query = Linear(width, wide, spec.bias);
  if (disentangled.content_to_position)
    distance_key = Linear(width, wide, spec.bias && spec.key_bias);
}

PagePool::Layer Attention::cached(const StackSpec& stack, int64_t layer, DType dtype) {
  const AttentionSpec& a = stack.attention;
  return {.keys = {a.kv_heads, a.head_width, dtype},
          .values = {a.kv_heads, a.value_width, dtype},
          .reach = Reach::of(a, layer)};
}

// Query, key, value, the gate, the outputs of the heads, and the sums of the softmax.
double Attention::kept_bytes(const StackSpec& stack, int64_t, double element) {
  const AttentionSpec& a = stack.attention;
  const int64_t elements = a.heads * (a.head_width + (a.gated ? 3 : 1) * a.value_width) +
                           a.kv_heads * (a.head_width + a.value_width);
  return element * static_cast<double>(elements) + 4 * static_cast<double>(a.heads);
}

// One product with the key, and one with the value.
double Attention::flops(const StackSpec& stack, double, double pairs) {
  const AttentionSpec& a = stack.attention;
  return pairs * 2 * static_cast<double>(a.heads * (a.head_width + a.value_width));
}

// projected [B, T, heads D] -> [B, T, heads, D], with queries and keys normalised and rotated
Tensor Attention::heads_of(const Tensor& projected, const Norm& norm, const Parameter& gains,
                           int64_t heads, const Angles& angles, const LayerPass& pass) const {
  const int64_t B = projected.dim(0), T = projected.dim(1), D = projected.dim(2) / heads;
  const auto normed = [&](const Tensor& y) {
    const Tensor z = norm(y, y.dtype());
    if (!gains.present()) return z;
    return scale_columns(z.view(projected.shape()), gains.value.view({heads * D})).view(y.shape());
  };
  Tensor y = spec.norm == QueryKeyNorm::all ? norm(projected, projected.dtype()) : projected;
  y = y.view({B, T, heads, D});
  const bool by_head = spec.norm == QueryKeyNorm::head || spec.norm == QueryKeyNorm::each;
  if (by_head && !spec.norm_rotated) y = normed(y);
  if (angles.cosines) y = rotate(y, angles.cosines, angles.sines, pass.pairing);
  return by_head && spec.norm_rotated ? normed(y) : y;
}

const Angles& Attention::key_angles(const LayerPass& pass) const {
  static const Angles none;
  return !rotates ? none : window > 0 ? pass.local_angles : pass.angles;
}

const Angles& Attention::query_angles(const LayerPass& pass) const {
  return pass.query_angles.cosines ? pass.query_angles : key_angles(pass);
}

Attention::KeysValues Attention::of_memory(const Tensor& memory, const LayerPass& pass) const {
  const auto [k, v] = all_of(memory, pass, key, value);
  return {probed(pass, ProbePoint::What::key,
                 heads_of(k, key_norm, key_gains, spec.kv_heads, {}, pass)),
          probed(pass, ProbePoint::What::value, heads_of(v, {}, {}, spec.kv_heads, {}, pass))};
}

Tensor Attention::operator()(const Tensor& x, const LayerPass& pass, const Tensor& residual) const {
  Tensor heads = normed_heads(
      scaled_heads(across ? cross_attention(x, pass) : self_attention(x, pass), head_factors));
  if (spec.gated)
    heads = gated_activation(gate(x, pass).view(heads.shape()), heads, Activation::sigmoid);
  heads = probed(pass, ProbePoint::What::heads, heads);  // [B, T, H, D]
  const Tensor mixed = heads.view({x.dim(0), x.dim(1), spec.heads * spec.value_width});
  return added_to(residual, output, mixed, pass);  // [B, T, C]
}

// What the output layer reads.
Tensor Attention::normed_heads(const Tensor& heads) const {
  if (!heads_norm.present()) return heads;
  const Shape rows{heads.dim(0), heads.dim(1), heads.dim(2) * heads.dim(3)};
  return heads_norm(heads.view(rows), heads.dtype()).view(heads.shape());
}

Tensor Attention::probed(const LayerPass& pass, ProbePoint::What what, Tensor found) const {
  return model::probed(pass, {what, layer, stack_of(pass)}, std::move(found));
}

float Attention::score_scale() const {
  return spec.scale > 0 ? spec.scale : 1.0f / std::sqrt(static_cast<float>(spec.head_width));
}

PagedOptions Attention::paged(const KvCache& cache) const {
  PagedOptions options;
  options.kv_heads = spec.kv_heads;
  options.value_width = spec.value_width;
  options.pages = cache.layout().dtype;
  options.scale = score_scale();
  options.softcap = spec.softcap;
  options.sinks = sinks.value;
  return options;
}

Tensor Attention::self_attention(const Tensor& x, const LayerPass& pass) const {
  const auto [all_q, all_k, all_v] = all_of(x, pass, query, key, value);
  const Tensor q =
      probed(pass, ProbePoint::What::query,  // [B, T, H, D]
             heads_of(all_q, query_norm, query_gains, spec.heads, query_angles(pass), pass));
  const KeysValues kv = {
      probed(pass, ProbePoint::What::key,
             heads_of(all_k, key_norm, key_gains, spec.kv_heads, key_angles(pass), pass)),
      probed(pass, ProbePoint::What::value,
             with_first_values(heads_of(all_v, {}, {}, spec.kv_heads, {}, pass), pass))};
  if (pass.cache == nullptr) {
    AttentionOptions options;
    options.mask = masked(pass, spec, window);
    options.bias = pass.distance_bias;
    if (pass.distances) options.terms = terms_of_distances(q, kv.keys, pass);
    return attend_to(q, kv, options, pass);
  }
  // The keys and values of earlier tokens are in the cache.
  PagedOptions options = paged(*pass.cache);
  options.bias = pass.distance_bias;
  options.bias_zero = pass.bias_zero;
  pass.cache->append(layer, kv.keys, kv.values);
  const std::vector<PagedText> texts = pass.cache->spans(layer, masked(pass, spec, window));
  if (pass.probe != nullptr && pass.probe->attend_paged)
    pass.probe->attend_paged(layer, q, texts, options);
  return attention_paged(q, texts, options);
}

// Both terms of disentangled attention: scale * (q_t . K_d + Q_d . k_s)   -> [B, H, T, T]
Tensor Attention::terms_of_distances(const Tensor& q, const Tensor& k,
                                     const LayerPass& pass) const {
  const auto of_distances = [&](const Linear& own, const Linear& shared) {  // [U, R, H, D]
    const Tensor y = (disentangled.shared ? shared : own)(pass.distances, pass);
    return y.view({y.dim(0), y.dim(1), spec.heads, spec.head_width});
  };
  Tensor of_queries, of_keys;  // [B, H, T, R]
  if (disentangled.content_to_position)
    of_queries = head_products(q, of_distances(distance_key, key));
  if (disentangled.position_to_content)
    of_keys = head_products(k, of_distances(distance_query, query));
  return distance_terms(of_queries, of_keys, pass.distance_rows, score_scale());
}

// v = (1 - share) v + share * v_first; the first layer keeps its values for the others.
Tensor Attention::with_first_values(const Tensor& values, const LayerPass& pass) const {
  const float share = spec.value_residual;
  if (share == 0) return values;
  if (pass.first_values) return add(scale(values, 1 - share), scale(pass.first_values, share));
  if (pass.new_values != nullptr) *pass.new_values = values;
  return values;
}

Tensor Attention::cross_attention(const Tensor& x, const LayerPass& pass) const {
  const Tensor q = probed(pass, ProbePoint::What::query,
                          heads_of(query(x, pass), query_norm, query_gains, spec.heads, {}, pass));
  if (pass.cache == nullptr) {
    AttentionOptions options;
    options.mask.valid = pass.memory_valid;
    return attend_to(q, of_memory(pass.memory, pass), options, pass);
  }
  KvCache& cache = *pass.cache;
  if (!cache.has_memory(layer)) {
    const auto [k, v] = of_memory(pass.memory, pass);
    cache.set_memory(layer, k, v, pass.memory_valid);
  }
  return attention_paged(q, cache.memory_spans(layer), paged(cache));
}

Tensor Attention::attend_to(const Tensor& q, const KeysValues& kv, AttentionOptions options,
                            const LayerPass& pass) const {
  options.scale = score_scale();
  options.softcap = spec.softcap;
  options.sinks = sinks.value;
  options.dropout = pass.dropout_at(weight_dropout.probability, weight_dropout.substream);
  return attend(q, kv.keys, kv.values, options, pass, layer, stack_of(pass));
}

}  // namespace fovea::model
