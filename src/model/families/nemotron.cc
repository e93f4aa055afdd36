#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Nemotron 4 (Parmar et al. 2024): LayerNorm with gains of 1 + w, squared ReLU, and rotary
// positions for half of each head.
void nemotron_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(
      io, s,
      {.epsilon = 1e-5f, .epsilon_key = "norm_eps", .activation = "relu2", .rotary_share = 0.5f});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("mlp_bias", d.ffn.bias, false);
  d.norm.kind = NormKind::layer;
  d.norm.unit_offset = true;
  d.ffn.gated = false;
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family nemotron = {"nemotron", decoder_architectures("Nemotron", "NemotronForCausalLM"),
                         nemotron_config,
                         with_own_prefix_of_answers(llama_names() + layer_norm_biases()), "model."};

}  // namespace fovea::model
