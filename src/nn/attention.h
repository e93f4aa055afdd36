#pragma once

#include "fovea/spec.h"
#include "nn/linear.h"
#include "nn/pass.h"

namespace fovea {

// Self-attention with H heads over G key-value heads (Vaswani et al. 2017; G < H: Ainslie et al.,
// 2023).
struct Attention {
  Linear query, key, value, output;
  int64_t layer = 0, heads = 0, kv_heads = 0, head_width = 0, window = 0;
  float dropout_probability = 0;

  Attention() = default;
  Attention(const AttentionSpec& spec, int64_t width, int64_t layer, float dropout);

  Tensor operator()(const Tensor& x, const Pass& pass) const;  // x [B, T, C] -> [B, T, C]

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    query.each(f, name + ".query");
    key.each(f, name + ".key");
    value.each(f, name + ".value");
    output.each(f, name + ".output");
  }
};

}  // namespace fovea
