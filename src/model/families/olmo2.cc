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

// OLMo 3 (2025): three local layers before each global one, whose positions alone may be scaled.
void olmo3_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::all;
  if (io.reading()) d.position.rotary.local_theta = 500000;
  llama_sizes(io, s, {.theta = 500000, .epsilon = 1e-5f, .rope_by_layer_type = true});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  windows_of_pattern(io, d, 4);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

Names olmo2_names() {
  return with_decoder_heads(llama_attention_names()) +
         Names{{"model.layers.{i}.post_{attention,feedforward}_layernorm.weight",
                "decoder.{i}.norm.{attention,ffn}.output.weight"},
               {"model.layers.{i}.mlp.{gate,up,down}_proj.weight",
                "decoder.{i}.ffn.{gate,up,down}.weight"}};
}

const Family olmo2 = {"olmo2", decoder_architectures("Olmo2", "Olmo2ForCausalLM"), olmo2_config,
                      olmo2_names(), "model."};
const Family olmo3 = {"olmo3", decoder_architectures("Olmo3", "Olmo3ForCausalLM"), olmo3_config,
                      olmo2_names(), "model."};

}  // namespace fovea::model
