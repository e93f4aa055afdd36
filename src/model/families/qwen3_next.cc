#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

// Qwen3-Next (2025): three layers with the gated delta rule, one with gated attention.
void common(Config& io, Spec& s, const LlamaDefaults& defaults) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, defaults);
  d.norm.unit_offset = true;
  d.attention.norm = QueryKeyNorm::head;
  d.attention.gated = true;
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  int64_t interval = 4;
  if (io.reading()) io("full_attention_interval", interval, 4);
  mixers_by_type(io, d, MixerKind::gated_delta, "linear_attention",
                 [=](int64_t layer) { return (layer + 1) % interval == 0; });
  io("linear_num_value_heads", d.delta.heads, 32);
  io("linear_num_key_heads", d.delta.key_heads, 16);
  io("linear_key_head_dim", d.delta.key_width, 128);
  io("linear_value_head_dim", d.delta.value_width, 128);
  io("linear_conv_kernel_dim", d.delta.convolution, 4);
}

void experts(Config& io, Spec& s, int64_t count, int64_t chosen) {
  ExpertsSpec& e = s.decoder->ffn.experts;
  io("num_experts", e.count, count);
  io("num_experts_per_tok", e.chosen, chosen);
  io("moe_intermediate_size", e.width, 512);
  io("router_aux_loss_coef", e.balance, 0.001f, 1e3f);
  e.shared = 1;
  e.shared_gate = true;
  io("shared_expert_intermediate_size", e.shared_width, 512);
}

constexpr LlamaDefaults kSizes{.kv_heads = 2, .head_width = 256, .rotary_share = 0.25f};

void qwen3_next_config(Config& io, Spec& s) {
  common(io, s, kSizes);
  experts(io, s, 512, 10);
  ExpertsSpec& e = s.decoder->ffn.experts;
  io("norm_topk_prob", e.normalise, true);
  io("mlp_only_layers", e.dense_layers);
  int64_t step = 1;
  io("decoder_sparse_step", step, 1);
  for (int64_t i = 0; i < s.decoder->layers; ++i)
    if ((i + 1) % step != 0) e.dense_layers.push_back(i);
  if (io.reading()) io.refuse_unknown({});
}

// Qwen 3.5 (2026), without its encoder of images.
void refuse_unknown_of_3_5(Config& io) {
  io.only("attn_output_gate", true);
  io.refuse_unknown({"mamba_ssm_dtype", "mtp_num_hidden_layers", "mtp_use_dedicated_embeddings"});
}

void qwen3_5_config(Config& io, Spec& s) {
  LlamaDefaults defaults = kSizes;
  defaults.kv_heads = 4;
  common(io, s, defaults);
  if (io.reading()) refuse_unknown_of_3_5(io);
}

void qwen3_5_moe_config(Config& io, Spec& s) {
  LlamaDefaults defaults = kSizes;
  defaults.ffn_width = 512;  // no layer has this width
  common(io, s, defaults);
  experts(io, s, 256, 8);
  if (io.reading()) refuse_unknown_of_3_5(io);
}

const Names delta_names = {
    {"model.layers.{i}.linear_attn.conv1d.weight",
     "decoder.{i}.delta.{query_convolution+key_convolution+value_convolution}",
     Stored::column_convolution},
    {"model.layers.{i}.linear_attn.dt_bias", "decoder.{i}.delta.decay.bias"},
    {"model.layers.{i}.linear_attn.A_log", "decoder.{i}.delta.rate"},
    {"model.layers.{i}.linear_attn.norm.weight", "decoder.{i}.delta.norm.weight"},
    {"model.layers.{i}.linear_attn.out_proj.weight", "decoder.{i}.delta.output.weight"}};

const Names next_inputs = {
    {"model.layers.{i}.linear_attn.in_proj_qkvz.weight",
     "decoder.{i}.delta.{query+key+value+gate}.weight", Stored::by_delta_head},
    {"model.layers.{i}.linear_attn.in_proj_ba.weight", "decoder.{i}.delta.{beta+decay}.weight",
     Stored::by_delta_head}};
const Names inputs = {{"model.layers.{i}.linear_attn.in_proj_qkv.weight",
                       "decoder.{i}.delta.{query+key+value}.weight"},
                      {"model.layers.{i}.linear_attn.in_proj_{z,b,a}.weight",
                       "decoder.{i}.delta.{gate,beta,decay}.weight"}};

// Queries and their gates alternate by head. The rule precedes that of plain queries.
const Names gated_names =
    Names{{"model.layers.{i}.self_attn.q_proj.{weight,bias}",
           "decoder.{i}.attention.{query+gate}.{weight,bias}", Stored::by_query_head}} +
    llama_names();

const Names shared_expert_names = {
    {"model.layers.{i}.mlp.shared_expert.{gate,up,down}_proj.weight",
     "decoder.{i}.ffn.shared.{gate,up,down}.weight"},
    {"model.layers.{i}.mlp.shared_expert_gate.weight", "decoder.{i}.ffn.shared_gate.weight"}};

// Its files have layers that predict further tokens.
Family predicting_further(Family family) {
  family.predicts_further = true;
  return family;
}

}  // namespace

const Family qwen3_next =
    predicting_further({"qwen3_next",
                        decoder_architectures("Qwen3Next", "Qwen3NextForCausalLM"),
                        qwen3_next_config,
                        with_own_prefix_of_answers(gated_names + delta_names + next_inputs +
                                                   expert_names() + shared_expert_names),
                        "model.",
                        {},
                        expert_names_in_memory()});
const Family qwen3_5_text = predicting_further(
    {"qwen3_5_text", decoder_architectures("Qwen3_5", "Qwen3_5ForCausalLM"), qwen3_5_config,
     with_own_prefix_of_answers(gated_names + delta_names + inputs), "model."});
const Family qwen3_5_moe_text =
    predicting_further({"qwen3_5_moe_text",
                        language_models("Qwen3_5Moe"),
                        qwen3_5_moe_config,
                        gated_names + delta_names + inputs + expert_names() + shared_expert_names,
                        "model.",
                        {},
                        expert_names_in_memory()});

}  // namespace fovea::model
