#pragma once

#include "fovea/model/spec.h"

namespace fovea::test {

// The sizes of a small model, whose passes take microseconds. All other fields of its Spec have
// their defaults.
struct SmallSize {
  int64_t vocabulary = 11, context = 8, width = 12, layers = 2, heads = 2;
};

inline model::StackSpec small_stack(const SmallSize& size = {}) {
  model::StackSpec stack;
  stack.layers = size.layers;
  stack.attention.heads = size.heads;
  return stack;
}

inline model::Spec small_decoder(const SmallSize& size = {}) {
  model::Spec spec;
  spec.vocabulary = size.vocabulary;
  spec.context = size.context;
  spec.width = size.width;
  spec.decoder = small_stack(size);
  return spec;
}

// Returns a decoder with RMSNorm, gated SiLU and rotary positions, without biases.
inline model::Spec small_llama(const SmallSize& size, int64_t ffn_width) {
  model::Spec spec = small_decoder(size);
  model::StackSpec& d = *spec.decoder;
  d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  d.norm.kind = model::NormKind::rms;
  d.position.kind = model::PositionKind::rotary;
  d.ffn.gated = true;
  d.ffn.activation = Activation::silu;
  d.ffn.width = ffn_width;
  return spec;
}

inline model::Spec small_encoder(const SmallSize& size = {}) {
  model::Spec spec = small_decoder(size);
  spec.encoder.swap(spec.decoder);
  return spec;
}

inline model::Spec small_encoder_decoder(const SmallSize& size = {}) {
  model::Spec spec = small_decoder(size);
  spec.encoder = spec.decoder;
  return spec;
}

// Returns a preset with these sizes and this width of the FFN; all other fields are unchanged.
inline model::Spec scaled_down(model::Spec preset, const SmallSize& size, int64_t ffn_width) {
  preset.vocabulary = size.vocabulary;
  preset.context = size.context;
  preset.width = size.width;
  for (auto* stack : {&preset.encoder, &preset.decoder}) {
    if (!*stack) continue;
    (*stack)->layers = size.layers;
    (*stack)->attention.heads = size.heads;
    (*stack)->ffn.width = ffn_width;
  }
  return preset;
}

}  // namespace fovea::test
