#include "nn/attention.h"

#include <cmath>

#include "base/error.h"

namespace fovea {

Attention::Attention(const AttentionSpec& spec, int64_t width, int64_t layer_, float dropout)
    : query(width, spec.heads * spec.head_width, spec.bias),
      key(width, spec.kv_heads * spec.head_width, spec.bias),
      value(width, spec.kv_heads * spec.head_width, spec.bias),
      output(spec.heads * spec.head_width, width, spec.output_bias, Role::residual_matrix),
      layer(layer_),
      heads(spec.heads),
      kv_heads(spec.kv_heads),
      head_width(spec.head_width),
      window(spec.window),
      dropout_probability(dropout) {}

Tensor Attention::operator()(const Tensor& x, const Pass& pass) const {
  const int64_t B = x.dim(0), T = x.dim(1), D = head_width;
  const Tensor q = query(x).view({B, T, heads, D});
  Tensor k = key(x).view({B, T, kv_heads, D});
  Tensor v = value(x).view({B, T, kv_heads, D});

  AttentionOptions options;
  options.scale = 1.0f / std::sqrt(static_cast<float>(D));
  options.mask = pass.mask;
  options.mask.window = window;
  options.dropout = pass.drop(dropout_probability, place_of_dropout(layer, 0));
  if (pass.cache != nullptr) {
    pass.cache->append(layer, k, v);
    options.mask.first_query = pass.cache->length();
    options.keys = pass.cache->length() + T;
    k = pass.cache->keys(layer);
    v = pass.cache->values(layer);
  }
  if (pass.probe != nullptr && pass.probe->wants_weights &&
      pass.probe->wants_weights(fmt::format("attention.{}", layer))) {
    // [B, H, T, S]
    probe(pass, fmt::format("attention.{}", layer), attention_weights(q, k, options));
  }
  const Tensor mixed = attention(q, k, v, options);  // [B, T, H, D]
  return output(mixed.view({B, T, heads * D}));      // [B, T, C]
}

}  // namespace fovea
