#pragma once

#include "nn/attention.h"
#include "nn/ffn.h"
#include "nn/norm.h"

namespace fovea {

// One layer: two sublayers on the residual stream.
struct Block {
  Attention attention;
  FeedForward ffn;
  Norms attention_norm, ffn_norm;
  bool parallel = false;
  int64_t layer = 0;
  float dropout_probability = 0;

  Block() = default;
  Block(const StackSpec& spec, const DropoutSpec& dropout, int64_t width, int64_t layer);

  Tensor operator()(const Tensor& x, const Pass& pass) const;  // x [B, T, C], f32 -> [B, T, C], f32

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    attention_norm.each(f, name + ".norm.attention");
    attention.each(f, name + ".attention");
    ffn_norm.each(f, name + ".norm.ffn");
    ffn.each(f, name + ".ffn");
  }
};

}  // namespace fovea
