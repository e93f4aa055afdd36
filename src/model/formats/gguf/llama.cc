// GGUF's architectures that are shaped like LLaMA.

#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

// LLaMA, Mistral and Mixtral, which have the same name in GGUF. llama.cpp has no window for this
// architecture; the key attention.sliding_window is an addition of fovea.
void gguf_llama_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  gguf_llama_shape(io, s);
  gguf_experts(io, s);
  auto& windows = d.attention.windows;
  int64_t window = windows.empty() ? 0 : windows[0];
  if (io.reading() || window > 0) io("attention.sliding_window", window, 0);
  if (io.reading()) windows = {window};
  gguf_refuse_unknown(io);
}

void gguf_qwen2_config(Config& io, Spec& s) {
  gguf_llama_shape(io, s);
  gguf_refuse_unknown(io);
}

void gguf_qwen3_config(Config& io, Spec& s) {
  s.decoder->attention.norm = QueryKeyNorm::head;
  gguf_llama_shape(io, s);
  // llama.cpp's pooling by the head for labels
  if (!io.reading() && s.head.kind == HeadKind::sequence) io.write("pooling_type", 4);
  gguf_refuse_unknown(io);
}

void gguf_qwen3_moe_config(Config& io, Spec& s) {
  s.decoder->attention.norm = QueryKeyNorm::head;
  gguf_llama_shape(io, s);
  gguf_experts(io, s);
  io("expert_feed_forward_length", s.decoder->ffn.experts.width, 0);
  gguf_refuse_unknown(io);
}

// LLaMA with fused matrices. llama.cpp treats all layers as layers without a window.
void gguf_phi3_config(Config& io, Spec& s) {
  auto& windows = s.decoder->attention.windows;
  gguf_llama_shape(io, s);
  int64_t window = windows.empty() ? 0 : windows[0];
  if (io.reading() || window > 0) io("attention.sliding_window", window, 0);
  if (io.reading()) windows = {window};
  gguf_refuse_unknown(io);
}

void gguf_olmo2_config(Config& io, Spec& s) {
  s.decoder->placement = {false, true, false};
  s.decoder->attention.norm = QueryKeyNorm::all;
  gguf_llama_shape(io, s);
  gguf_refuse_unknown(io);
}

// GGUF's llama stores query and key rows so that RoPE rotates neighbouring rows (2i, 2i + 1) as a
// pair. Hugging Face's files and fovea pair row i with row i + D / 2.
const Names llama_pairs = {{"blk.{i}.attn_{q,k}.{weight,bias}",
                            "decoder.{i}.attention.{query,key}.{weight,bias}",
                            Stored::rotary_pairs}};
const Names phi3_fused = {{"blk.{i}.ffn_up.weight", "decoder.{i}.ffn.{gate+up}.weight"}};

}  // namespace

const Family gguf_llama = gguf_architecture("llama", gguf_llama_config, llama_pairs);
const Family gguf_qwen2 = gguf_architecture("qwen2", gguf_qwen2_config);
const Family gguf_qwen3 = gguf_with_classifier(gguf_architecture("qwen3", gguf_qwen3_config));
const Family gguf_qwen3_moe = gguf_architecture("qwen3moe", gguf_qwen3_moe_config);
const Family gguf_phi3 =
    gguf_architecture("phi3", gguf_phi3_config, gguf_fused_attention() + phi3_fused);
const Family gguf_olmo2 = gguf_architecture("olmo2", gguf_olmo2_config);

}  // namespace fovea::model
