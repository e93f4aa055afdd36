#include <algorithm>

#include "base/error.h"
#include "families/registry.h"
#include "families/shared.h"

namespace fovea::model {
namespace {

struct LatentDefaults {
  float epsilon = 1e-6f;
  int64_t query_latent = 1536, own = 128, value = 128;
};

// null = the queries have no latent.
void query_latent(Config& io, LatentSpec& latent, int64_t absent) {
  constexpr const char* kKey = "q_lora_rank";
  const bool null =
      io.reading() ? io.says(kKey) && io.value(kKey).is_null() : latent.query_width == 0;
  if (!null) return io(kKey, latent.query_width, absent);
  io.write(kKey, nullptr);
  latent.query_width = 0;
}

// YaRN's mscale_all_dim also scales the scores.
void score_scale(Config& io, StackSpec& d) {
  constexpr const char *kMultiple = "mscale_all_dim",
                       *kKeys[] = {"rope_parameters", "rope_scaling"};
  if (!io.reading()) {
    const float multiple = latent_multiple(d);
    for (const char* key : kKeys) {
      if (multiple == 0 || !io.written().contains(key)) continue;
      nlohmann::ordered_json parameters = io.written()[key];
      parameters[kMultiple] = std::stod(fmt::format("{}", multiple));
      if (d.position.rotary.attention_factor == 1) parameters["mscale"] = parameters[kMultiple];
      io.write(key, parameters);
    }
    return;
  }
  if (d.position.rotary.scaling != RotaryScaling::yarn) return;
  const char* const key = kKeys[io.value(kKeys[0]).is_null() ? 1 : 0];
  const nlohmann::json multiple = io.value(key).value(kMultiple, nlohmann::json());
  if (multiple.is_number()) d.attention.scale = latent_scale(d, multiple.get<float>());
}

// LLaMA with latent attention, whose latents have norms with an epsilon of their own, and which
// rotates neighbouring elements.
void latent_sizes(Config& io, Spec& s, const LatentDefaults& defaults) {
  StackSpec& d = *s.decoder;
  AttentionSpec& a = d.attention;
  LatentSpec& l = d.latent;
  llama_sizes(io, s, {.epsilon = defaults.epsilon});
  io.only("num_key_value_heads", a.heads);
  for (const char* key : {"attention_bias", "mlp_bias"}) io.only(key, false);
  query_latent(io, l, defaults.query_latent);
  io("kv_lora_rank", l.width, 512);
  io("qk_rope_head_dim", l.rotary, 64);
  io("qk_nope_head_dim", a.head_width, defaults.own);
  io("v_head_dim", a.value_width, defaults.value);
  io.write("head_dim", l.rotary);
  io.write("qk_head_dim", a.head_width + l.rotary);
  score_scale(io, d);
  if (!io.reading()) return;
  d.mixers = {MixerKind::latent};
  a.kv_heads = a.heads;
  l.epsilon = 1e-6f;
  d.position.rotary.neighbours = true;
  if (d.position.rotary.share != 1)
    fail(ErrorKind::Unsupported, "{}: partial_rotary_factor is {}; expected 1", io.name(),
         d.position.rotary.share);
}

// DeepSeek-V2 (DeepSeek-AI 2024): the softmax over all experts; groups by their best expert.
void deepseek_v2_config(Config& io, Spec& s) {
  constexpr const char *kMethod = "topk_method", *kLimited = "group_limited_greedy";
  StackSpec& d = *s.decoder;
  ExpertsSpec& e = d.ffn.experts;
  latent_sizes(io, s, {});
  routed_expert_sizes(io, e, {.count = 64, .chosen = 0, .shared = 2, .width = 1407});
  leading_dense_layers(io, d, 0);
  e.normalise = false;
  io.only("norm_topk_prob", false);
  io.only("scoring_func", "softmax");
  io.only("moe_layer_freq", 1);
  const bool limited = io.reading() ? io.value(kMethod) == kLimited : e.groups > 1;
  if (!limited) io.only(kMethod, "greedy");
  io.write(kMethod, limited ? kLimited : "greedy");
  io("n_group", e.groups, 1);
  io("topk_group", e.groups_chosen, 1);
  if (!limited) e.groups = e.groups_chosen = 1;
  if (io.reading()) io.refuse_unknown({"qk_head_dim", "aux_loss_alpha", "seq_aux", "ep_size"});
}

void interleaved(Config& io, Spec& s) {
  io("rope_interleave", s.decoder->position.rotary.neighbours, true);
}

// DeepSeek-V3 (DeepSeek-AI 2024). Its files have layers that predict further tokens.
void deepseek_v3_config(Config& io, Spec& s) {
  latent_sizes(io, s, {});
  interleaved(io, s);
  grouped_experts(io, *s.decoder,
                  {.count = 256,
                   .chosen = 8,
                   .shared = 1,
                   .dense = 3,
                   .width = 2048,
                   .groups = 8,
                   .groups_chosen = 4,
                   .normalise = true,
                   .scale = 2.5f});
  io.only("scoring_func", "sigmoid");
  io.only("topk_method", "noaux_tc");
  io.only("moe_layer_freq", 1);
  if (io.reading())
    io.refuse_unknown({"qk_head_dim", "num_local_experts", "num_nextn_predict_layers",
                       "num_mtp_layers", "aux_loss_alpha", "seq_aux", "ep_size"});
}

// The kind of each feed-forward layer, "dense" or "sparse"; without a list, the first is dense.
void kinds_of_layers(Config& io, StackSpec& d) {
  constexpr const char *kKey = "mlp_layer_types", *kDense = "dense", *kSparse = "sparse";
  auto& dense = d.ffn.experts.dense_layers;
  if (!io.reading()) {
    nlohmann::ordered_json kinds = nlohmann::ordered_json::array();
    for (int64_t i = 0; i < d.layers; ++i)
      kinds.push_back(std::ranges::find(dense, i) == dense.end() ? kSparse : kDense);
    return io.write(kKey, kinds);
  }
  const nlohmann::json kinds = io.value(kKey);
  if (kinds.is_null()) {
    io.only("first_k_dense_replace", 1);
    dense = {0};
    return;
  }
  if (!kinds.is_array() || std::ssize(kinds) != d.layers)
    fail(ErrorKind::BadFile, "{}: {} has {} names; expected {}, one per layer", io.name(), kKey,
         kinds.size(), d.layers);
  for (int64_t i = 0; i < d.layers; ++i) {
    const nlohmann::json& kind = kinds[static_cast<size_t>(i)];
    if (kind != kDense && kind != kSparse)
      fail(ErrorKind::BadFile, "{}: {} has {}; expected {} or {}", io.name(), kKey, kind.dump(),
           kDense, kSparse);
    if (kind == kDense) dense.push_back(i);
  }
}

// GLM 4.7 Flash: the experts of GLM 4.5 with latent attention.
void glm4_moe_lite_config(Config& io, Spec& s) {
  const GroupedExperts defaults = {
      .count = 64, .chosen = 4, .shared = 1, .width = 1536, .normalise = true, .scale = 1.8f};
  latent_sizes(io, s, {.epsilon = 1e-5f, .query_latent = 768, .own = 192, .value = 256});
  interleaved(io, s);
  routed_expert_sizes(io, s.decoder->ffn.experts, defaults);
  sigmoid_router(io, s.decoder->ffn.experts, defaults);
  kinds_of_layers(io, *s.decoder);
  io.only("scoring_func", "sigmoid");
  io.only("topk_method", "noaux_tc");
  if (io.reading())
    io.refuse_unknown(
        {"qk_head_dim", "num_local_experts", "num_nextn_predict_layers", "first_k_dense_replace"});
}

bool has_no_query_latent(const Spec& spec) { return spec.decoder->latent.query_width == 0; }

const Names latent_names =
    llama_names() + expert_names() + grouped_expert_names() +
    Names{{"model.layers.{i}.self_attn.q_proj.weight", "decoder.{i}.latent.query.weight",
           Stored::rotary_last, has_no_query_latent},
          {"model.layers.{i}.self_attn.q_a_proj.weight", "decoder.{i}.latent.query.weight"},
          {"model.layers.{i}.self_attn.q_b_proj.weight", "decoder.{i}.latent.query_up.weight",
           Stored::rotary_last},
          {"model.layers.{i}.self_attn.{q,kv}_a_layernorm.weight",
           "decoder.{i}.latent.{query,latent}_norm.weight"},
          {"model.layers.{i}.self_attn.kv_a_proj_with_mqa.weight",
           "decoder.{i}.latent.{latent+rotary_key}.weight"},
          {"model.layers.{i}.self_attn.kv_b_proj.weight",
           "decoder.{i}.latent.{key_up+value_up}.weight", Stored::by_query_head},
          {"model.layers.{i}.self_attn.o_proj.weight", "decoder.{i}.latent.output.weight"}};

// The classes for labels of texts and, if `of_tokens`, of tokens.
std::vector<Architecture> with_labels(const std::string& stem, bool of_tokens) {
  std::vector<Architecture> all = decoder_architectures(stem, stem + "ForCausalLM");
  std::erase_if(all, [&](const Architecture& each) {
    return each.head.kind == HeadKind::span || (each.head.kind == HeadKind::token && !of_tokens);
  });
  return all;
}

Family with_latents(const char* name, std::vector<Architecture> architectures,
                    void (*config)(Config& io, Spec& spec), bool predicts_further) {
  return {.model_type = name,
          .architectures = std::move(architectures),
          .config = config,
          .names = latent_names,
          .prefix = "model.",
          .buffers = {".rotary_emb.inv_freq"},
          .names_in_memory = expert_names_in_memory(),
          .predicts_further = predicts_further};
}

}  // namespace

const Family deepseek_v2 =
    with_latents("deepseek_v2", with_labels("DeepseekV2", false), deepseek_v2_config, false);
const Family deepseek_v3 =
    with_latents("deepseek_v3", with_labels("DeepseekV3", true), deepseek_v3_config, true);
const Family glm4_moe_lite =
    with_latents("glm4_moe_lite", language_models("Glm4MoeLite"), glm4_moe_lite_config, true);

}  // namespace fovea::model
