#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Mistral with experts (Jiang et al. 2024).
void mixtral_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.theta = 1e6f, .epsilon = 1e-5f});
  window_of_all(io, d, 0);
  io("num_local_experts", d.ffn.experts.count, 8);
  io("num_experts_per_tok", d.ffn.experts.chosen, 2);
  io("router_aux_loss_coef", d.ffn.experts.balance, 0.001f, 1e3f);
  io.only("router_jitter_noise", 0.0);
  if (io.reading()) io.refuse_unknown({});
}

const Names mixtral_names =
    with_decoder_heads(llama_attention_names()) +
    Names{{"model.layers.{i}.{input,post_attention}_layernorm.weight",
           "decoder.{i}.norm.{attention,ffn}.input.weight"},
          {"model.layers.{i}.block_sparse_moe.gate.weight", "decoder.{i}.ffn.router.weight"},
          {"model.layers.{i}.block_sparse_moe.experts.{e}.w{1,3,2}.weight",
           "decoder.{i}.ffn.experts.{e}.{gate,up,down}.weight"}};

const Names mixtral_in_memory = {
    {"model.layers.{i}.mlp.gate.weight", "decoder.{i}.ffn.router.weight"},
    {"model.layers.{i}.mlp.experts.gate_up_proj", "decoder.{i}.ffn.experts.{e}.{gate+up}.weight",
     Stored::stacked},
    {"model.layers.{i}.mlp.experts.down_proj", "decoder.{i}.ffn.experts.{e}.down.weight",
     Stored::stacked},
};

}  // namespace

const Family mixtral = {"mixtral",        decoder_architectures("Mixtral", "MixtralForCausalLM"),
                        mixtral_config,   mixtral_names,
                        "model.",         {},
                        mixtral_in_memory};

}  // namespace fovea::model
