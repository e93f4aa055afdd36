#include "families/registry.h"
#include "families/shared.h"

#include <algorithm>

namespace fovea::model {
namespace {

// LFM2 (Liquid AI 2025): gated convolutions, and a few layers with attention.
void common(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s,
              {.theta = 1e6f,
               .epsilon = 1e-5f,
               .epsilon_key = "norm_eps",
               .activation_key = nullptr,
               .tied = true,
               .kv_heads = 8});
  d.ffn.activation = Activation::silu;
  d.attention.norm = QueryKeyNorm::head;
  std::vector<int64_t> full;  // layers with attention, in files without layer_types
  bool all = true;
  if (io.reading()) {
    all = io.value("full_attn_idxs").is_null();
    io("full_attn_idxs", full);
  }
  mixers_by_type(io, d, MixerKind::convolution, "conv", [&](int64_t layer) {
    return all || std::ranges::find(full, layer) != full.end();
  });
  io("conv_L_cache", d.convolution.tokens, 3);
  io("conv_bias", d.convolution.bias, false);
}

// The file may have a width of which the layers have two thirds, rounded up to a multiple.
void lfm2_config(Config& io, Spec& s) {
  common(io, s);
  bool adjusts = false;
  io("block_auto_adjust_ff_dim", adjusts, true);
  float factor = 1;
  int64_t multiple = 256;
  if (io.reading()) {
    io("block_ffn_dim_multiplier", factor, 1, 1e3f);
    io("block_multiple_of", multiple, 256);
    io.refuse_unknown({});
  }
  if (!adjusts) return;
  int64_t& width = s.decoder->ffn.width;
  width = static_cast<int64_t>(factor * static_cast<float>(2 * width / 3));
  width = (width + multiple - 1) / multiple * multiple;
}

void lfm2_moe_config(Config& io, Spec& s) {
  common(io, s);
  ExpertsSpec& e = s.decoder->ffn.experts;
  e.score = ExpertScore::sigmoid;
  io("num_experts", e.count, 32);
  io("num_experts_per_tok", e.chosen, 4);
  io("moe_intermediate_size", e.width, 1792);
  io("norm_topk_prob", e.normalise, true);
  io("use_expert_bias", e.selection_bias, true);
  io("routed_scaling_factor", e.scale, 1, 1e6f);
  int64_t dense = std::ssize(e.dense_layers);
  io("num_dense_layers", dense, 2);
  if (!io.reading()) return;
  for (int64_t i = 0; i < std::min(dense, s.decoder->layers); ++i) e.dense_layers.push_back(i);
  io.refuse_unknown({});
}

const Names mixer_names = {
    {"model.embed_tokens.weight", "embedding.token"},
    {"model.embedding_norm.weight", "decoder.norm.final.weight"},
    {"model.layers.{i}.{operator,ffn}_norm.weight",
     "decoder.{i}.norm.{attention,ffn}.input.weight"},
    {"model.layers.{i}.self_attn.{q,k,v,out}_proj.weight",
     "decoder.{i}.attention.{query,key,value,output}.weight"},
    {"model.layers.{i}.self_attn.{q,k}_layernorm.weight",
     "decoder.{i}.attention.{query,key}_norm.weight"},
    {"model.layers.{i}.conv.in_proj.{weight,bias}",
     "decoder.{i}.convolution.{before+after+value}.{weight,bias}"},
    {"model.layers.{i}.conv.conv.weight", "decoder.{i}.convolution.weight",
     Stored::column_convolution},
    {"model.layers.{i}.conv.conv.bias", "decoder.{i}.convolution.bias"},
    {"model.layers.{i}.conv.out_proj.{weight,bias}",
     "decoder.{i}.convolution.output.{weight,bias}"},
    {"model.layers.{i}.feed_forward.{w1,w3,w2}.weight", "decoder.{i}.ffn.{gate,up,down}.weight"},
    {"lm_head.weight", "head.output.weight"}};

const Names lfm2_expert_names = {
    {"model.layers.{i}.feed_forward.gate.weight", "decoder.{i}.ffn.router.weight"},
    {"model.layers.{i}.feed_forward.expert_bias", "decoder.{i}.ffn.router.selection_bias"},
    {"model.layers.{i}.feed_forward.experts.{e}.{w1,w3,w2}.weight",
     "decoder.{i}.ffn.experts.{e}.{gate,up,down}.weight"}};

const Names lfm2_experts_in_memory = {
    {"model.layers.{i}.feed_forward.experts.gate_up_proj",
     "decoder.{i}.ffn.experts.{e}.{gate+up}.weight", Stored::stacked},
    {"model.layers.{i}.feed_forward.experts.down_proj", "decoder.{i}.ffn.experts.{e}.down.weight",
     Stored::stacked}};

}  // namespace

const Family lfm2 = {"lfm2", language_models("Lfm2"), lfm2_config, mixer_names, "model."};
const Family lfm2_moe = {"lfm2_moe",
                         language_models("Lfm2Moe"),
                         lfm2_moe_config,
                         mixer_names + lfm2_expert_names,
                         "model.",
                         {},
                         lfm2_experts_in_memory};

}  // namespace fovea::model
