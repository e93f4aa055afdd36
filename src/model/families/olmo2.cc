#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// OLMo 2 (OLMo Team 2025): LLaMA with norms on the sublayers' outputs, and norms of queries and
// keys over all heads.
void olmo2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::all;
  llama_sizes(io, s, {.theta = 500000, .epsilon = 1e-5f});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  if (io.reading()) io.refuse_unknown({});
}

const Names olmo2_names = with_decoder_heads(llama_attention_names()) +
                          Names{{"model.layers.{i}.post_{attention,feedforward}_layernorm.weight",
                                 "decoder.{i}.norm.{attention,ffn}.output.weight"},
                                {"model.layers.{i}.mlp.{gate,up,down}_proj.weight",
                                 "decoder.{i}.ffn.{gate,up,down}.weight"}};

}  // namespace

const Family olmo2 = {"olmo2", decoder_architectures("Olmo2", "Olmo2ForCausalLM"), olmo2_config,
                      olmo2_names, "model."};

}  // namespace fovea::model
