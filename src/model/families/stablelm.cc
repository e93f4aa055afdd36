#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// StableLM (Bellagente et al. 2024): LLaMA with LayerNorm, and rotary positions for a part of each
// head.
void stablelm_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(
      io, s,
      {.epsilon = 1e-5f, .epsilon_key = "layer_norm_eps", .kv_heads = 32, .rotary_share = 0.25f});
  io("use_qkv_bias", d.attention.bias, false);
  io("use_parallel_residual", d.parallel, false);
  d.one_norm = d.parallel;
  io("hidden_dropout", s.dropout.residual, 0);
  io.only("qk_layernorm", false);
  d.norm.kind = NormKind::layer;
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family stablelm = {"stablelm", decoder_architectures("StableLm", "StableLmForCausalLM"),
                         stablelm_config, llama_names() + layer_norm_biases(), "model."};

}  // namespace fovea::model
