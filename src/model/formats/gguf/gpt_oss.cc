// GGUF's architecture of gpt-oss.

#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

void gguf_gpt_oss_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  RotarySpec& rotary = d.position.rotary;
  gguf_llama_shape(io, s);
  gguf_windows(io, s, 2);
  gguf_experts(io, s);
  io("expert_feed_forward_length", d.ffn.experts.width, 0);
  // Rules of the architecture, for which the file has no keys. llama.cpp rounds yarn's bounds.
  d.ffn.activation = Activation::quick_gelu;
  d.ffn.gate_limit = 7;
  d.ffn.up_offset = 1;
  d.ffn.bias = d.ffn.experts.router_bias = d.attention.sinks = true;
  if (rotary.scaling == RotaryScaling::yarn) rotary.whole_pairs = false;
  gguf_refuse_unknown(io);
}

const Names gpt_oss_names = {
    {"blk.{i}.post_attention_norm.weight", "decoder.{i}.norm.ffn.input.weight"},
    {"blk.{i}.attn_sinks.weight", "decoder.{i}.attention.sinks"},
    {"blk.{i}.ffn_gate_inp.{weight,bias}", "decoder.{i}.ffn.router.{weight,bias}"},
    {"blk.{i}.ffn_{gate,up,down}_exps.bias", "decoder.{i}.ffn.experts.{e}.{gate,up,down}.bias",
     Stored::stacked}};

}  // namespace

const Family gguf_gpt_oss = gguf_architecture("gpt-oss", gguf_gpt_oss_config, gpt_oss_names);

}  // namespace fovea::model
