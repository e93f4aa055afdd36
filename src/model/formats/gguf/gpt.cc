// GGUF's architectures that are shaped like GPT.

#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

void gguf_gpt2_config(Config& io, Spec& s) {
  s.decoder->position.kind = PositionKind::learned;
  gguf_gpt_shape(io, s);
  gguf_refuse_unknown(io);
}

// BLOOM: ALiBi, and a norm on the embeddings.
void gguf_bloom_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.position = {.kind = PositionKind::none, .bias = DistanceBias::alibi};
  d.embedding_norm = true;
  gguf_gpt_shape(io, s);
  gguf_refuse_unknown(io);
}

// GPT-NeoX: rotary positions for a part of each head, parallel sublayers.
void gguf_gpt_neox_config(Config& io, Spec& s) {
  s.decoder->ffn.activation = Activation::gelu;
  gguf_gpt_shape(io, s);
  io("use_parallel_residual", s.decoder->parallel, true);
  gguf_rope(io, s);
  gguf_refuse_unknown(io);
}

}  // namespace

const Family gguf_gpt2 = gguf_architecture("gpt2", gguf_gpt2_config, gguf_fused_attention());
const Family gguf_bloom = gguf_architecture("bloom", gguf_bloom_config, gguf_fused_attention());
const Family gguf_gpt_neox =
    gguf_architecture("gptneox", gguf_gpt_neox_config, gguf_fused_attention());

}  // namespace fovea::model
