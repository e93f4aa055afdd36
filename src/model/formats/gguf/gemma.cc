// GGUF's Gemma: gains are stored as 1 + w. The file does not contain the scale of the attention
// scores, which follows from the model's sizes. The architecture determines which layers are local,
// unless the file specifies it.

#include <cmath>

#include "base/error.h"
#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

constexpr int64_t kNoLargest = -1;

// The scores' scale is 1 / sqrt(head width); for the largest model of each generation, recognised
// by its number of layers, it is 1 / sqrt(width / heads).
void score_scale(Config& io, Spec& s, int64_t layers_of_largest) {
  AttentionSpec& a = s.decoder->attention;
  const int64_t head_width = gguf_head_width(s);
  const bool largest = s.decoder->layers == layers_of_largest;
  const auto scalar = static_cast<float>(largest ? s.width / a.heads : head_width);
  const float scale = 1 / std::sqrt(scalar);
  if (!io.reading() && std::fabs(a.scale - scale) > 1e-6f * scale)
    fail(ErrorKind::Unsupported,
         "attention.scale is {}; expected {}, which GGUF implies for this model", a.scale, scale);
  a.scale = scale;
}

void common(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.norm.unit_offset = true;
  d.placement = {true, true, false};
  s.scaled_embedding = true;
  gguf_llama_shape(io, s);
  d.ffn.activation = Activation::gelu_tanh;
}

void gguf_gemma_config(Config& io, Spec& s) {
  s.decoder->norm.unit_offset = true;
  s.scaled_embedding = true;
  gguf_llama_shape(io, s);
  s.decoder->ffn.activation = Activation::gelu_tanh;
  gguf_refuse_unknown(io);
}

void gguf_gemma2_config(Config& io, Spec& s) {
  common(io, s);
  score_scale(io, s, 46);
  gguf_windows(io, s, 2);
  if (!io.reading() && (s.decoder->attention.softcap == 0 || s.head.softcap == 0))
    fail(ErrorKind::Unsupported,
         "softcap is 0; expected a positive number, as in every file of this architecture");
  io("attn_logit_softcapping", s.decoder->attention.softcap, 50, 1e6f);
  io("final_logit_softcapping", s.head.softcap, 30, 1e6f);
  gguf_refuse_unknown(io);
}

void gemma3_layers(Config& io, Spec& s, bool causal, int64_t layers_of_largest) {
  s.decoder->causal = causal;
  s.decoder->attention.norm = QueryKeyNorm::head;
  common(io, s);
  score_scale(io, s, layers_of_largest);
  gguf_windows(io, s, 6);
  io("rope.freq_base_swa", s.decoder->position.rotary.local_theta, 10000, 1e9f);
}

void gguf_gemma3_config(Config& io, Spec& s) {
  gemma3_layers(io, s, true, 62);
  if (io.reading() || s.head.softcap > 0) io("final_logit_softcapping", s.head.softcap, 0, 1e6f);
  gguf_refuse_unknown(io);
}

// EmbeddingGemma: Gemma 3 whose tokens see those after them, without a head.
void gguf_gemma_embedding_config(Config& io, Spec& s) {
  gemma3_layers(io, s, false, kNoLargest);
  io.write("attention.causal", false);
  for (const char* dense : kGgufDense)  // the shapes of the matrices say the same
    for (const char* side : {"_feat_in", "_feat_out"})
      io.value((std::string(dense) + side).c_str());
  gguf_refuse_unknown(io);
}

const Names shifted_gains = {{"output_norm.weight", "decoder.norm.final.weight", Stored::one_plus},
                             {"blk.{i}.{attn,post_attention}_norm.weight",
                              "decoder.{i}.norm.attention.{input,output}.weight", Stored::one_plus},
                             {"blk.{i}.{ffn,post_ffw}_norm.weight",
                              "decoder.{i}.norm.ffn.{input,output}.weight", Stored::one_plus},
                             {"blk.{i}.attn_{q,k}_norm.weight",
                              "decoder.{i}.attention.{query,key}_norm.weight", Stored::one_plus}};

Family gemma_embedding() {
  Family family = gguf_architecture(kGemmaEmbedding, gguf_gemma_embedding_config, shifted_gains);
  family.architectures = {{"embedder", {.kind = HeadKind::pooled, .pooling = Pooling::last}}};
  for (const char* dense : kGgufDense) family.buffers.push_back(std::string(dense) + ".weight");
  return family;
}

}  // namespace

const Family gguf_gemma = gguf_architecture("gemma", gguf_gemma_config, shifted_gains);
const Family gguf_gemma2 = gguf_architecture("gemma2", gguf_gemma2_config, shifted_gains);
const Family gguf_gemma3 = gguf_architecture("gemma3", gguf_gemma3_config, shifted_gains);
const Family gguf_gemma_embedding = gemma_embedding();

}  // namespace fovea::model
