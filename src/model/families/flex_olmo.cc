#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// FlexOlmo (Shi et al. 2025): OLMo 2 with experts, which are trained apart.
void flex_olmo_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::all;
  llama_sizes(io, s, {.theta = 500000});
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("num_experts", d.ffn.experts.count, 7);
  io("num_experts_per_tok", d.ffn.experts.chosen, 5);
  io("norm_topk_prob", d.ffn.experts.normalise, false);
  io("router_aux_loss_coef", d.ffn.experts.balance, 0.01f, 1e3f);
  if (io.reading()) io.refuse_unknown({});
}

}  // namespace

const Family flex_olmo = {"flex_olmo",
                          language_models("FlexOlmo"),
                          flex_olmo_config,
                          olmo2_names() + expert_names(),
                          "model.",
                          {},
                          expert_names_in_memory()};

}  // namespace fovea::model
