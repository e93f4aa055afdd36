#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// GLM 4 (Team GLM 2024): LLaMA with biases of query, key and value, of which half of each head is
// rotated, in pairs of neighbours.
void glm_common(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s,
              {.epsilon = 1.5625e-7f, .kv_heads = 2, .head_width = 128, .rotary_share = 0.5f});
  io("attention_bias", d.attention.bias, true);
  d.position.rotary.neighbours = true;
}

void glm_config(Config& io, Spec& s) {
  glm_common(io, s);
  if (io.reading()) io.refuse_unknown({});
}

// GLM 4 of 2025, with norms on the sublayers' outputs too.
void glm4_config(Config& io, Spec& s) {
  s.decoder->placement = {true, true, false};
  glm_common(io, s);
  if (io.reading()) io.refuse_unknown({});
}

const Names glm_common_names =
    with_decoder_heads(llama_attention_names()) +
    Names{{"model.layers.{i}.input_layernorm.weight", "decoder.{i}.norm.attention.input.weight"},
          {"model.layers.{i}.post_attention_layernorm.weight", "decoder.{i}.norm.ffn.input.weight"},
          {"model.layers.{i}.mlp.gate_up_proj.weight", "decoder.{i}.ffn.{gate+up}.weight"},
          {"model.layers.{i}.mlp.down_proj.weight", "decoder.{i}.ffn.down.weight"}};

const Names glm4_names =
    glm_common_names + Names{{"model.layers.{i}.post_{self_attn,mlp}_layernorm.weight",
                              "decoder.{i}.norm.{attention,ffn}.output.weight"}};

}  // namespace

const Family glm = {"glm", decoder_architectures("Glm", "GlmForCausalLM"), glm_config,
                    glm_common_names, "model."};
const Family glm4 = {"glm4", decoder_architectures("Glm4", "Glm4ForCausalLM"), glm4_config,
                     glm4_names, "model."};

}  // namespace fovea::model
