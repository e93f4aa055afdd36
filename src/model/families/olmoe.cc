#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// OLMoE (Muennighoff et al. 2024): LLaMA with experts, and norms of queries and keys over all
// heads.
void olmoe_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.attention.norm = QueryKeyNorm::all;
  llama_sizes(io, s, {.epsilon = 1e-5f});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io.only("clip_qkv", nullptr);
  io("num_experts", d.ffn.experts.count, 64);
  io("num_experts_per_tok", d.ffn.experts.chosen, 8);
  io("norm_topk_prob", d.ffn.experts.normalise, false);
  io("router_aux_loss_coef", d.ffn.experts.balance, 0.01f, 1e3f);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family olmoe = {
    "olmoe", language_models("Olmoe"), olmoe_config, llama_names() + expert_names(), "model.",
    {},      expert_names_in_memory()};

}  // namespace fovea::model
