#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// MiniMax-M2 (MiniMax 2025): Mixtral with norms of queries and keys over all heads, and the
// router of DeepSeek-V3 without groups.
void minimax_m2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  ExpertsSpec& e = d.ffn.experts;
  float share = 1;
  int64_t turned = 0;
  if (io.says("rotary_dim")) {  // before transformers 5
    int64_t width = 128;
    io("head_dim", width, width);
    io("rotary_dim", turned, 0);
    if (turned > 0) share = static_cast<float>(turned) / static_cast<float>(width);
  }
  llama_sizes(io, s, {.theta = 5e6f, .kv_heads = 8, .head_width = 128, .rotary_share = share});
  d.attention.norm = QueryKeyNorm::all;
  e.score = ExpertScore::sigmoid;
  e.selection_bias = true;
  io("num_local_experts", e.count, 256);
  io("num_experts_per_tok", e.chosen, 8);
  io("router_aux_loss_coef", e.balance, 0.001f, 1e3f);
  io.only("router_jitter_noise", 0.0);
  io.only("scoring_func", "sigmoid");
  io.only("qk_norm_type", "per_layer");
  for (const char* key : {"use_qk_norm", "use_routing_bias"}) io.only(key, true);
  io.only("shared_intermediate_size", 0);
  if (io.reading())
    io.refuse_unknown({"attn_type_list", "mtp_transformer_layers", "num_mtp_modules", "use_mtp",
                       "shared_moe_mode", "layernorm_full_attention_beta",
                       "layernorm_linear_attention_beta", "layernorm_mlp_beta", "max_model_len"});
}

const Names minimax_m2_names =
    llama_attention_names() +
    Names{{"model.layers.{i}.{input,post_attention}_layernorm.weight",
           "decoder.{i}.norm.{attention,ffn}.input.weight"},
          {"model.layers.{i}.block_sparse_moe.gate.weight", "decoder.{i}.ffn.router.weight"},
          {"model.layers.{i}.block_sparse_moe.e_score_correction_bias",
           "decoder.{i}.ffn.router.selection_bias"},
          {"model.layers.{i}.block_sparse_moe.experts.{e}.w{1,3,2}.weight",
           "decoder.{i}.ffn.experts.{e}.{gate,up,down}.weight"}};

const Names minimax_m2_in_memory =
    Names{
        {"model.layers.{i}.mlp.gate.weight", "decoder.{i}.ffn.router.weight"},
        {"model.layers.{i}.mlp.e_score_correction_bias", "decoder.{i}.ffn.router.selection_bias"}} +
    expert_names_in_memory();

}  // namespace

const Family minimax_m2 = {
    "minimax_m2", language_models("MiniMaxM2"), minimax_m2_config, minimax_m2_names, "model.",
    {},           minimax_m2_in_memory};

}  // namespace fovea::model
