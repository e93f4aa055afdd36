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

Attention::KeysValues Attention::of_memory(const Tensor& memory, const Pass& pass) const {
  return {heads_of(memory, key, key_norm, spec.kv_heads, {}, pass),
          heads_of(memory, value, {}, spec.kv_heads, {}, pass)};
}

Attention::KeysValues Attention::of_tokens(const Tensor& x, const Pass& pass) const {
  const Angles& angles = window > 0 ? pass.local_angles : pass.angles;
  return {heads_of(x, key, key_norm, spec.kv_heads, angles, pass),
          heads_of(x, value, {}, spec.kv_heads, {}, pass)};
}

Mask Attention::masked(const Pass& pass) const {
  Mask mask = pass.mask;
  mask.window = window;
  mask.global = window > 0 ? spec.global : 0;
  return mask;
}

Tensor Attention::operator()(const Tensor& x, const Pass& pass) const {
  const int64_t B = x.dim(0), T = x.dim(1), D = spec.head_width;
  const Angles none;
  const Angles& angles = across ? none : window > 0 ? pass.local_angles : pass.angles;
  const Tensor q = heads_of(x, query, query_norm, spec.heads, angles, pass);  // [B, T, H, D]
  const Tensor mixed = pass.cache != nullptr ? attend_cached(q, x, pass) : attend(q, x, pass);
  return output(mixed.view({B, T, spec.heads * D}));  // [B, T, C]
}

float Attention::score_scale() const {
  return spec.scale > 0 ? spec.scale : 1.0f / std::sqrt(static_cast<float>(spec.head_width));
}

Tensor Attention::attend(const Tensor& q, const Tensor& x, const Pass& pass) const {
  AttentionOptions options;
  options.scale = score_scale();
  options.softcap = spec.softcap;
  options.dropout = pass.drop(place.probability, place.substream);
  if (across) {
    options.mask.valid = pass.memory_valid;
  } else {
    options.mask = masked(pass);
    options.bias = pass.distance_bias;
  }
  const auto [k, v] = across ? of_memory(pass.memory, pass) : of_tokens(x, pass);  // [B, S, G, D]
  const Tensor mixed = attention(q, k, v, options);                                // [B, T, H, D]
  if (pass.probe != nullptr) show(*pass.probe, {q, k, v, options, mixed}, pass.stack);
  return mixed;
}

// The tokens that came before are in the cache, and what the encoder made.
Tensor Attention::attend_cached(const Tensor& q, const Tensor& x, const Pass& pass) const {
  KvCache& cache = *pass.cache;
  PagedOptions options;
  options.kv_heads = spec.kv_heads;
  options.pages = cache.layout().dtype;
  options.scale = score_scale();
  options.softcap = spec.softcap;
  if (across) {
    if (!cache.has_memory(layer)) {
      const auto [k, v] = of_memory(pass.memory, pass);
      cache.set_memory(layer, k, v, pass.memory_valid);
    }
    return attention_paged(q, cache.memory_spans(layer), options);
  }
  options.bias = pass.distance_bias;
  options.bias_zero = pass.bias_zero;
  const auto [k, v] = of_tokens(x, pass);
  cache.append(layer, k, v);
  const std::vector<PagedText> texts = cache.spans(layer, masked(pass));
  if (pass.probe != nullptr && pass.probe->attend_paged)
    pass.probe->attend_paged(layer, q, texts, options);
  return attention_paged(q, texts, options);
}

void Attention::show(const Probe& probe, const Attending& here, const char* stack) const {
  const std::string name = across ? fmt::format("cross_attention.{}", layer)
                                  : fmt::format("{}attention.{}", stack, layer);
  if (probe.wants_weights && probe.wants_weights(name))
    probe.see(name, attention_weights(here.q, here.k, here.options));  // [B, H, T, S]
  if (probe.attend) probe.attend(name, here);
}

}  // namespace fovea
