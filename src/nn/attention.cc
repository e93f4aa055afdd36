#include "nn/attention.h"

#include <cmath>

#include "base/error.h"

namespace fovea {
namespace {

Norm norm_of(const StackSpec& stack, int64_t heads) {
  const int64_t D = stack.attention.head_width;
  const QueryKeyNorm kind = stack.attention.norm;
  return Norm(stack.norm, kind == QueryKeyNorm::all ? heads * D : D, kind != QueryKeyNorm::none);
}

}  // namespace

Attention::Attention(const StackSpec& stack, int64_t width, int64_t layer_, bool across_,
                     Dropout place_)
    : spec(stack.attention),
      query(width, spec.heads * spec.head_width, spec.bias),
      key(width, spec.kv_heads * spec.head_width, spec.bias && spec.key_bias),
      value(width, spec.kv_heads * spec.head_width, spec.bias),
      output(spec.heads * spec.head_width, width, spec.output_bias, Role::residual_matrix),
      query_norm(norm_of(stack, spec.heads)),
      key_norm(norm_of(stack, spec.kv_heads)),
      layer(layer_),
      window(spec.windows.empty() ? 0 : spec.windows[static_cast<size_t>(layer_)]),
      across(across_),
      place(place_) {}

// x [B, T, C] -> [B, T, heads, D], normalised and turned
Tensor Attention::heads_of(const Tensor& x, const Linear& linear, const Norm& norm, int64_t heads,
                           const Angles& angles, const Pass& pass) const {
  const int64_t B = x.dim(0), T = x.dim(1), D = spec.head_width;
  Tensor y = linear(x);  // [B, T, heads D]
  if (spec.norm == QueryKeyNorm::all) y = norm(y, pass.compute);
  y = y.view({B, T, heads, D});
  if (spec.norm == QueryKeyNorm::head) y = norm(y, pass.compute);
  if (!angles.cosines) return y;
  return rotate(y, angles.cosines, angles.sines, pass.pairing);
}

Tensor Attention::operator()(const Tensor& x, const Pass& pass) const {
  const Angles none;
  const Angles& angles = across ? none : window > 0 ? pass.local_angles : pass.angles;
  AttentionOptions options;
  options.scale =
      spec.scale > 0 ? spec.scale : 1.0f / std::sqrt(static_cast<float>(spec.head_width));
  options.softcap = spec.softcap;
  options.dropout = pass.drop(place.probability, place.substream);

  const Tensor q = heads_of(x, query, query_norm, spec.heads, angles, pass);  // [B, T, H, D]
  Tensor k, v;                                                                // [B, S, G, D]
  if (across) {
    look_across(k, v, options, pass);
  } else {
    k = heads_of(x, key, key_norm, spec.kv_heads, angles, pass);
    v = heads_of(x, value, {}, spec.kv_heads, none, pass);
    look_back(k, v, options, pass);
  }
  const Tensor mixed = attention(q, k, v, options);  // [B, T, H, D]
  if (pass.probe != nullptr) show(*pass.probe, {q, k, v, options, mixed}, pass.stack);
  return output(mixed.view({x.dim(0), x.dim(1), spec.heads * spec.head_width}));  // [B, T, C]
}

void Attention::show(const Probe& probe, const Attending& here, const char* stack) const {
  const std::string name = across ? fmt::format("cross_attention.{}", layer)
                                  : fmt::format("{}attention.{}", stack, layer);
  if (probe.wants_weights && probe.wants_weights(name))
    probe.see(name, attention_weights(here.q, here.k, here.options));  // [B, H, T, S]
  if (probe.attend) probe.attend(name, here);
}

// Keys and values of the encoder's output are the same in every step: a cache keeps them.
void Attention::look_across(Tensor& k, Tensor& v, AttentionOptions& options,
                            const Pass& pass) const {
  KvCache::Pair made;
  KvCache::Pair& pair = pass.cache != nullptr ? pass.cache->memory(layer) : made;
  if (!pair.keys) {
    pair.keys = heads_of(pass.memory, key, key_norm, spec.kv_heads, {}, pass);
    pair.values = heads_of(pass.memory, value, {}, spec.kv_heads, {}, pass);
  }
  k = pair.keys, v = pair.values;
  options.mask.valid = pass.memory_valid;
}

// The tokens that came before are in the cache, if there is one.
void Attention::look_back(Tensor& k, Tensor& v, AttentionOptions& options, const Pass& pass) const {
  options.mask = pass.mask;
  options.mask.window = window;
  options.mask.global = window > 0 ? spec.global : 0;
  options.bias = pass.distance_bias;
  if (pass.cache == nullptr) return;
  pass.cache->append(layer, k, v);
  options.mask.first_query = pass.cache->length();
  options.keys = pass.cache->length() + k.dim(1);
  k = pass.cache->keys(layer);
  v = pass.cache->values(layer);
}

}  // namespace fovea
