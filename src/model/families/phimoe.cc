#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Phi 3.5 MoE (Abdin et al. 2024): LLaMA with LayerNorm and experts that a sparse mixer chooses.
// transformers samples the experts in training; fovea chooses the best ones.
void phimoe_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  ExpertsSpec& e = d.ffn.experts;
  llama_sizes(io, s, {.theta = 1e6f, .epsilon = 1e-5f, .kv_heads = 8, .mscales = true});
  d.norm.kind = NormKind::layer;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  bool bias = s.head.bias;
  io("lm_head_bias", bias, false);
  if (s.head.kind == HeadKind::language_model) s.head.bias = bias;
  window_of_all(io, d, 0);
  e.score = ExpertScore::sparse_mixer;
  io("num_local_experts", e.count, 16);
  io("num_experts_per_tok", e.chosen, 2);
  io.only("num_experts_per_tok", 2);  // whatever the key says
  io("router_jitter_noise", e.tolerance, 0.01f);
  io("router_aux_loss_coef", e.balance, 0.001f, 1e3f);
  io.only("input_jitter_noise", 0.0);
  if (io.reading()) io.refuse_unknown({"original_max_position_embeddings"});
}

std::vector<Architecture> phimoe_architectures() {
  std::vector<Architecture> all = language_models("Phimoe");
  all.push_back({"PhimoeForSequenceClassification",
                 {.kind = HeadKind::sequence, .labels = 2, .pooling = Pooling::last}});
  all.push_back({"PhiMoEForCausalLM", {}});  // the name of the published files
  return all;
}

const Names phimoe_names =
    with_decoder_heads(llama_attention_names()) + layer_norm_biases() +
    Names{{"model.layers.{i}.{input,post_attention}_layernorm.weight",
           "decoder.{i}.norm.{attention,ffn}.input.weight"},
          {"lm_head.bias", "head.output.bias"},
          {"model.layers.{i}.block_sparse_moe.gate.weight", "decoder.{i}.ffn.router.weight"},
          {"model.layers.{i}.block_sparse_moe.experts.{e}.w{1,3,2}.weight",
           "decoder.{i}.ffn.experts.{e}.{gate,up,down}.weight"}};

const Names phimoe_in_memory =
    Names{{"model.layers.{i}.mlp.router.weight", "decoder.{i}.ffn.router.weight"}} +
    expert_names_in_memory();

}  // namespace

const Family phimoe = {"phimoe", phimoe_architectures(), phimoe_config, phimoe_names, "model.",
                       {},       phimoe_in_memory};

}  // namespace fovea::model
