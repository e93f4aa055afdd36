#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

// The encoder of T5. llama.cpp has the approximate GELU for gated feed-forward layers, ReLU for
// others, and T5's largest distance for all.
void gguf_t5_encoder_config(Config& io, Spec& s) {
  if (!s.encoder) s.encoder.emplace();
  s.decoder.reset();
  StackSpec& e = *s.encoder;
  e.norm.kind = NormKind::rms;
  e.position = {
      .kind = PositionKind::none, .bias = DistanceBias::relative, .buckets = e.position.buckets};
  e.attention.bias = e.attention.output_bias = e.ffn.bias = false;
  e.attention.scale = 1;
  gguf_encoder_sizes(io, s);
  io("attention.key_length", e.attention.head_width, 0);
  int64_t value_width = e.attention.head_width;
  io("attention.value_length", value_width, value_width);
  io.only("attention.value_length", e.attention.head_width);
  io("attention.layer_norm_rms_epsilon", e.norm.epsilon, 1e-6f);
  io.value("attention.layer_norm_epsilon");  // the same
  io("attention.relative_buckets_count", e.position.buckets, 32);
  io("enc.blk.0.ffn_gate.weight", e.ffn.gated, false);
  e.ffn.activation = e.ffn.gated ? Activation::gelu_tanh : Activation::relu;
  gguf_refuse_unknown(io);
}

const Names t5_encoder_names = {
    {"token_embd.weight", "embedding.token"},
    {"enc.blk.{i}.attn_norm.weight", "encoder.{i}.norm.attention.input.weight"},
    {"enc.blk.{i}.attn_{q,k,v,o}.weight", "encoder.{i}.attention.{query,key,value,output}.weight"},
    {"enc.blk.0.attn_rel_b.weight", "encoder.distance", Stored::transposed},
    {"enc.blk.{i}.ffn_norm.weight", "encoder.{i}.norm.ffn.input.weight"},
    {"enc.blk.{i}.ffn_{gate,up,down}.weight", "encoder.{i}.ffn.{gate,up,down}.weight"},
    {"enc.output_norm.weight", "encoder.norm.final.weight"}};

}  // namespace

const Family gguf_t5_encoder = {"t5encoder",
                                {{"encoder", {.kind = HeadKind::pooled, .pooling = Pooling::mean}}},
                                gguf_t5_encoder_config,
                                t5_encoder_names};

}  // namespace fovea::model
