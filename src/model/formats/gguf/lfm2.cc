// GGUF's architectures with gated convolutions.

#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

void shape(Config& io, Spec& s) {
  s.decoder->attention.norm = QueryKeyNorm::head;
  gguf_llama_shape(io, s, MixerKind::convolution);
  io("shortconv.l_cache", s.decoder->convolution.tokens);
}

void gguf_lfm2_config(Config& io, Spec& s) {
  shape(io, s);
  gguf_refuse_unknown(io);
}

void gguf_lfm2_moe_config(Config& io, Spec& s) {
  shape(io, s);
  gguf_experts(io, s);
  ExpertsSpec& e = s.decoder->ffn.experts;
  e.score = ExpertScore::sigmoid;
  e.selection_bias = true;
  io.only("expert_gating_func", 2);  // the sigmoid
  io.write("expert_gating_func", 2);
  io("expert_feed_forward_length", e.width, 0);
  gguf_leading_dense_layers(io, s);
  gguf_refuse_unknown(io);
}

const Names convolution_names = {
    {"token_embd_norm.weight", "decoder.norm.final.weight"},
    {"blk.{i}.shortconv.in_proj.weight", "decoder.{i}.convolution.{before+after+value}.weight"},
    {"blk.{i}.shortconv.conv.weight", "decoder.{i}.convolution.weight"},
    {"blk.{i}.shortconv.out_proj.weight", "decoder.{i}.convolution.output.weight"},
    {"blk.{i}.exp_probs_b.bias", "decoder.{i}.ffn.router.selection_bias"}};

}  // namespace

const Family gguf_lfm2 = gguf_architecture("lfm2", gguf_lfm2_config, convolution_names);
const Family gguf_lfm2_moe = gguf_architecture("lfm2moe", gguf_lfm2_moe_config, convolution_names);

}  // namespace fovea::model
