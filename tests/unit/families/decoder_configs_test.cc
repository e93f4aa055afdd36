// What families of decoders read from config.json, beyond the checkpoints of the parity tests: keys
// that are missing or have older spellings, and settings that are refused by name.

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>
#include <vector>

#include "base/error.h"
#include "families/registry.h"
#include "support/expect_error.h"

namespace fovea::model {
namespace {

using Json = nlohmann::json;
using Layers = std::vector<int64_t>;

Spec decoder_of(const Json& config) {
  Config reader(config, "config.json");
  Spec spec;
  describe(reader, family_named(config.at("model_type"), "config.json"), spec);
  return spec;
}

// Returns a config with the keys of LLaMA's sizes and `more`.
Json like_llama(const char* family, const Json& more = Json::object()) {
  Json config = {{"model_type", family},   {"vocab_size", 50},         {"hidden_size", 48},
                 {"num_hidden_layers", 4}, {"num_attention_heads", 6}, {"num_key_value_heads", 2},
                 {"head_dim", 8},          {"intermediate_size", 64}};
  config.update(more);
  return config;
}

// Returns a config with the keys of LLaMA's sizes, a few experts and `more`.
Json like_latent(const char* family, const Json& more = Json::object()) {
  Json config = like_llama(family, {{"num_key_value_heads", 6},
                                    {"n_routed_experts", 8},
                                    {"num_experts_per_tok", 2},
                                    {"n_group", 4},
                                    {"topk_group", 2}});
  config.update(more);
  return config;
}

const Json kFalcon = {{"model_type", "falcon"},
                      {"vocab_size", 50},
                      {"hidden_size", 48},
                      {"num_hidden_layers", 2},
                      {"num_attention_heads", 6}};
const Json kMpt = {
    {"model_type", "mpt"}, {"vocab_size", 50}, {"d_model", 48}, {"n_layers", 2}, {"n_heads", 6}};
const Json kGptNeo = {{"model_type", "gpt_neo"},
                      {"vocab_size", 50},
                      {"hidden_size", 48},
                      {"num_layers", 3},
                      {"num_heads", 6}};

const Json kMamba2 = {{"model_type", "mamba2"}, {"vocab_size", 50}, {"hidden_size", 48},
                      {"num_hidden_layers", 2}, {"num_heads", 6},   {"head_dim", 16},
                      {"n_groups", 2}};
const Json kHybrid = {{"mamba_n_heads", 6}, {"shared_intermediate_size", 20}};

// Returns the config with other values of some keys.
Json updated(Json config, const Json& more) {
  config.update(more);
  return config;
}

TEST(DecoderConfigs, AreRefusedByNameWhereFoveaComputesSomethingElse) {
  const std::vector<std::pair<Json, std::string>> cases = {
      {like_llama("gemma", {{"use_bidirectional_attention", true}}),
       "use_bidirectional_attention is true"},
      {like_llama("smollm3", {{"use_sliding_window", true}}), "use_sliding_window is true"},
      {like_llama("olmoe", {{"clip_qkv", 8.0}}), "clip_qkv is 8.0"},
      {like_llama("stablelm", {{"qk_layernorm", true}}), "qk_layernorm is true"},
      {like_llama("ernie4_5_moe", {{"use_bias", true}}), "use_bias is true"},
      {like_llama("hunyuan_v1_dense", {{"use_cla", true}}), "use_cla is true"},
      {like_llama("granite", {{"rope_interleaved", true}}), "rope_interleaved is not known"},
      {like_latent("deepseek_v2", {{"scoring_func", "sigmoid"}}), "scoring_func is \"sigmoid\""},
      {like_latent("deepseek_v2", {{"topk_method", "noaux_tc"}}), "topk_method is \"noaux_tc\""},
      {like_latent("deepseek_v2", {{"norm_topk_prob", true}}), "norm_topk_prob is true"},
      {like_latent("deepseek_v3", {{"topk_method", "greedy"}}), "topk_method is \"greedy\""},
      {like_latent("deepseek_v3", {{"attention_bias", true}}), "attention_bias is true"},
      {like_latent("deepseek_v3", {{"num_key_value_heads", 2}}), "num_key_value_heads is 2"},
      {like_latent("deepseek_v3", {{"partial_rotary_factor", 0.5}}),
       "partial_rotary_factor is 0.5"},
      {like_latent("glm4_moe_lite", {{"first_k_dense_replace", 2}}), "first_k_dense_replace is 2"},
      {updated(kFalcon, {{"alibi", true}}), "alibi is true"},
      {updated(kFalcon, {{"new_decoder_architecture", true}, {"parallel_attn", false}}),
       "parallel_attn is false"},
      {updated(kMpt, {{"attn_config", {{"clip_qkv", 6}}}}), "attn_config: clip_qkv is 6"},
      {updated(kMpt, {{"attn_config", {{"alibi", false}}}}), "attn_config: alibi is false"},
      {updated(kMpt, {{"no_bias", false}}), "no_bias is false"},
      {updated(kMamba2, {{"use_bias", true}}), "use_bias is true"},
      {updated(kMamba2, {{"hidden_act", "gelu"}}), "hidden_act is \"gelu\""},
      {like_llama("bamba", {{"mamba_n_heads", 6}, {"mamba_proj_bias", true}}),
       "mamba_proj_bias is true"},
      {like_llama("bamba", {{"mamba_n_heads", 6}, {"attn_rotary_emb", 8}}),
       "attn_rotary_emb is 8, which is not supported; expected 4"},
      {like_llama("granitemoehybrid", updated(kHybrid, {{"position_embedding_type", "alibi"}})),
       "position_embedding_type is \"alibi\"; expected rope or nope"},
      {like_llama("granitemoehybrid", {{"layer_types", {"mamba", "mamba", "mamba", "rnn"}}}),
       "layer_types has \"rnn\"; expected mamba or attention"},
  };
  for (const auto& [config, text] : cases) {
    SCOPED_TRACE(config.dump());
    expect_error(ErrorKind::Unsupported, {text}, [&, &given = config] { decoder_of(given); });
  }
}

TEST(DecoderConfigs, AreRefusedIfTheyAreDamaged) {
  const std::vector<std::pair<Json, std::string>> cases = {
      {like_llama("smollm3", {{"no_rope_layers", {1, 0}}}),
       "no_rope_layers has 2 numbers; expected 4"},
      {updated(kGptNeo, {{"attention_types", Json::array({Json::array({{"global"}, 2})})}}),
       "attention_types is"},
      {updated(kGptNeo, {{"attention_types", "local"}}), "attention_types is"},
      {like_llama("ministral3"), "rope_parameters is missing"},
      {like_llama("granite", {{"logits_scaling", -1}}), "logits_scaling is -1"},
      {like_llama("dots1", {{"num_experts_per_tok", 2}}), "n_routed_experts is missing"},
      {like_latent("glm4_moe_lite", {{"mlp_layer_types", {"dense", "sparse"}}}),
       "mlp_layer_types has 2 names; expected 4"},
      {like_latent("glm4_moe_lite", {{"mlp_layer_types", {"dense", "sparse", "none", "dense"}}}),
       "mlp_layer_types has \"none\""},
      {updated(kMamba2, {{"head_dim", 8}}),
       "6 heads are 8 wide; expected num_heads x head_dim, expand x hidden_size"},
      {updated(kMamba2, {{"time_step_limit", {0.5}}}), "time_step_limit is [0.5]; expected two"},
      {updated(kMamba2, {{"time_step_limit", {0.5, 0.25}}}), "time_step_limit is [0.5,0.25]"},
      {like_llama("bamba", {{"mamba_n_heads", 5}}),
       "5 heads are 19 wide; expected mamba_n_heads x mamba_d_head, mamba_expand x hidden_size"},
  };
  for (const auto& [config, text] : cases) {
    SCOPED_TRACE(config.dump());
    expect_error(ErrorKind::BadFile, {text}, [&, &given = config] { decoder_of(given); });
  }
}

TEST(DecoderConfigs, GemmaMeansTheTanhApproximationByGelu) {
  const Spec spec = decoder_of(like_llama("gemma", {{"hidden_act", "gelu"}}));
  EXPECT_EQ(spec.decoder->ffn.activation, Activation::gelu_tanh);
  EXPECT_TRUE(can_express(gemma, spec));
  EXPECT_EQ(decoder_of(like_llama("gemma", {{"head_dim", nullptr}})).decoder->attention.head_width,
            256);
}

TEST(DecoderConfigs, LeaveLayersWithoutPositions) {
  const auto unrotated = [](const Json& config) {
    return decoder_of(config).decoder->position.rotary.unrotated;
  };
  EXPECT_EQ(unrotated(like_llama("smollm3")), (Layers{3}));
  EXPECT_EQ(unrotated(like_llama("smollm3", {{"no_rope_layer_interval", 2}})), (Layers{1, 3}));
  EXPECT_EQ(unrotated(like_llama("smollm3", {{"no_rope_layers", {0, 1, 1, 0}}})), (Layers{0, 3}));
  EXPECT_EQ(unrotated(like_llama("cohere2")), (Layers{3}));
  EXPECT_EQ(unrotated(like_llama("cohere2", {{"sliding_window_pattern", 2}})), (Layers{1, 3}));
  EXPECT_EQ(unrotated(like_llama("exaone4")), (Layers{3}));
  EXPECT_EQ(unrotated(like_llama("exaone4", {{"sliding_window", nullptr}})), Layers{});
}

TEST(DecoderConfigs, OfOlmo3ScalePositionsOfGlobalLayersOnly) {
  const Spec spec = decoder_of(like_llama(
      "olmo3",
      {{"rope_theta", 300000},
       {"rope_scaling",
        {{"rope_type", "yarn"}, {"factor", 8.0}, {"original_max_position_embeddings", 512}}}}));
  const RotarySpec& rotary = spec.decoder->position.rotary;
  EXPECT_EQ(rotary.scaling, RotaryScaling::yarn);
  EXPECT_EQ(rotary.theta, 300000);
  EXPECT_EQ(rotary.local_theta, 500000);  // transformers uses rope_theta once
  EXPECT_EQ(spec.decoder->attention.windows, (Layers{4096, 4096, 4096, 0}));
}

TEST(DecoderConfigs, OfMamba2HaveLimitsOfTheirSteps) {
  const auto limits = [](const Json& given) {
    const Spec spec = decoder_of(updated(kMamba2, {{"time_step_limit", given}}));
    EXPECT_TRUE(can_express(mamba2, spec)) << given.dump();
    return std::pair(spec.decoder->state_space.least_step, spec.decoder->state_space.most_step);
  };
  const Json infinity = {{"__float__", "Infinity"}};
  EXPECT_EQ(limits(nullptr), std::pair(0.0f, 0.0f));
  EXPECT_EQ(limits({0.0, infinity}), std::pair(0.0f, 0.0f));
  EXPECT_EQ(limits({0.25, infinity}), std::pair(0.25f, 0.0f));
  EXPECT_EQ(limits({0.25, 1}), std::pair(0.25f, 1.0f));
}

TEST(DecoderConfigs, OfGranite4ListTheMixersByTheirOldNamesToo) {
  const auto mixers = [](const Json& more) {
    return decoder_of(like_llama("granitemoehybrid", updated(kHybrid, more))).decoder->mixers;
  };
  using enum MixerKind;
  const std::vector<MixerKind> expected = {state_space, attention, state_space, state_space};
  EXPECT_EQ(mixers({{"layer_types", {"mamba", "attention", "mamba", "mamba"}}}), expected);
  EXPECT_EQ(
      mixers({{"layer_types",
               {"linear_attention", "full_attention", "linear_attention", "linear_attention"}}}),
      expected);
  EXPECT_EQ(mixers({{"layer_types", {"attention", "attention", "attention", "attention"}}}),
            std::vector<MixerKind>{});
}

TEST(DecoderConfigs, OfOlmoHybridHavePositionsUnlessThetaIsNull) {
  const auto kind = [](const Json& theta) {
    return decoder_of(like_llama("olmo_hybrid", {{"rope_parameters", {{"rope_theta", theta}}}}))
        .decoder->position.kind;
  };
  EXPECT_EQ(kind(nullptr), PositionKind::none);
  EXPECT_EQ(kind(5000.0), PositionKind::rotary);
}

TEST(DecoderConfigs, OfHunyuanHaveAnAlphaThatRaisesTheta) {
  const Spec spec = decoder_of(like_llama("hunyuan_v1_dense", {{"rope_scaling",
                                                                {{"type", "dynamic"},
                                                                 {"alpha", 1000.0},
                                                                 {"factor", 1.0},
                                                                 {"mscale", 1.0},
                                                                 {"beta_fast", 32}}}}));
  const RotarySpec& rotary = spec.decoder->position.rotary;
  EXPECT_EQ(rotary.scaling, RotaryScaling::none);
  EXPECT_NEAR(rotary.theta, 1e4 * std::pow(1000.0, 8.0 / 6.0), 1e3);
  EXPECT_TRUE(can_express(hunyuan_v1_dense, spec));
}

TEST(DecoderConfigs, OfErnieListTheLayersWithExperts) {
  const auto dense = [](const Json& more) {
    return decoder_of(like_llama("ernie4_5_moe", more)).decoder->ffn.experts.dense_layers;
  };
  EXPECT_EQ(dense(Json::object()), (Layers{0}));
  EXPECT_EQ(dense({{"moe_layer_start_index", 0}}), Layers{});
  EXPECT_EQ(dense({{"moe_layer_interval", 2}, {"moe_layer_end_index", 2}}), (Layers{0, 2, 3}));
  EXPECT_EQ(dense({{"moe_layer_start_index", 2}, {"moe_layer_end_index", -1}}), (Layers{0, 1}));
}

TEST(DecoderConfigs, OfFalconHaveOneOrSeveralKeyValueHeads) {
  const auto shape = [](const Json& more) {
    const StackSpec d = *decoder_of(updated(kFalcon, more)).decoder;
    EXPECT_TRUE(can_express(falcon, decoder_of(updated(kFalcon, more)))) << more.dump();
    return std::tuple(d.attention.kv_heads, d.parallel, d.one_norm);
  };
  EXPECT_EQ(shape(Json::object()), std::tuple(1, true, true));
  EXPECT_EQ(shape({{"multi_query", false}}), std::tuple(6, true, true));
  EXPECT_EQ(shape({{"multi_query", false}, {"parallel_attn", false}}), std::tuple(6, false, false));
  const Json grouped = {{"new_decoder_architecture", true}, {"num_kv_heads", 2}};
  EXPECT_EQ(shape(grouped), std::tuple(2, true, false));
  EXPECT_EQ(shape(updated(grouped, {{"num_ln_in_parallel_attn", 1}})), std::tuple(2, true, true));
}

TEST(DecoderConfigs, OfDeepSeekHaveGroupsOfExpertsIfTheMethodUsesThem) {
  const auto router = [](const char* family, const Json& more) {
    const ExpertsSpec e = decoder_of(like_latent(family, more)).decoder->ffn.experts;
    return std::tuple(e.score, e.selection_bias, e.groups, e.groups_chosen, e.normalise);
  };
  const auto softmax = ExpertScore::softmax, sigmoid = ExpertScore::sigmoid;
  EXPECT_EQ(router("deepseek_v2", Json::object()), std::tuple(softmax, false, 1, 1, false));
  EXPECT_EQ(router("deepseek_v2", {{"topk_method", "group_limited_greedy"}}),
            std::tuple(softmax, false, 4, 2, false));
  EXPECT_EQ(router("deepseek_v3", Json::object()), std::tuple(sigmoid, true, 4, 2, true));
  EXPECT_EQ(router("glm4_moe_lite", {{"n_group", 1}, {"topk_group", 1}}),
            std::tuple(sigmoid, true, 1, 1, true));
}

TEST(DecoderConfigs, OfLatentAttentionHaveTheDefaultsOfTheirFamily) {
  const auto sizes = [](const char* family, const Json& more) {
    const StackSpec d = *decoder_of(like_latent(family, more)).decoder;
    const LatentSpec& l = d.latent;
    return Layers{l.width, l.query_width, l.rotary, d.attention.head_width,
                  d.attention.value_width};
  };
  EXPECT_EQ(sizes("deepseek_v2", Json::object()), (Layers{512, 1536, 64, 128, 128}));
  EXPECT_EQ(sizes("deepseek_v2", {{"q_lora_rank", nullptr}, {"kv_lora_rank", 12}}),
            (Layers{12, 0, 64, 128, 128}));
  EXPECT_EQ(sizes("deepseek_v3", {{"qk_rope_head_dim", 4}, {"qk_nope_head_dim", 6}}),
            (Layers{512, 1536, 4, 6, 128}));
  EXPECT_EQ(sizes("glm4_moe_lite", {{"v_head_dim", 5}}), (Layers{512, 768, 64, 192, 5}));
  const auto dense = [](const Json& more) {
    return decoder_of(like_latent("glm4_moe_lite", more)).decoder->ffn.experts.dense_layers;
  };
  EXPECT_EQ(dense(Json::object()), (Layers{0}));
  EXPECT_EQ(dense({{"mlp_layer_types", {"sparse", "dense", "sparse", "dense"}}}), (Layers{1, 3}));
}

// Of mscale and mscale_all_dim, the second one scales the scores too.
TEST(DecoderConfigs, OfLatentAttentionScaleTheScoresByYarn) {
  const auto with = [](const Json& more) {
    Json yarn = {{"type", "yarn"}, {"factor", 40}, {"original_max_position_embeddings", 64}};
    yarn.update(more);
    return like_latent("deepseek_v3", {{"rope_scaling", yarn}});
  };
  const auto factors = [](const Json& config) {
    const StackSpec d = *decoder_of(config).decoder;
    EXPECT_TRUE(can_express(deepseek_v3, decoder_of(config))) << config.dump();
    return std::pair(d.attention.scale, d.position.rotary.attention_factor);
  };
  const float default_scale = 1 / std::sqrt(192.0f), grown = 1 + 0.1f * std::log(40.0f);
  EXPECT_EQ(factors(with(Json::object())), std::pair(0.0f, 0.0f));
  const auto equal = factors(with({{"mscale", 1.0}, {"mscale_all_dim", 1.0}}));
  EXPECT_NEAR(equal.first, grown * grown * default_scale, 1e-6f);
  EXPECT_EQ(equal.second, 1);
  const auto other = factors(with({{"mscale", 1.0}, {"mscale_all_dim", 0.7071}}));
  EXPECT_GT(other.first, default_scale);
  EXPECT_LT(other.first, equal.first);
  EXPECT_GT(other.second, 1);
}

TEST(DecoderConfigs, AreWrittenAsTheyWereRead) {
  const std::vector<std::pair<const Family*, Json>> cases = {
      {&phi, like_llama("phi", {{"partial_rotary_factor", 1.0}})},
      {&glm4, like_llama("glm4", {{"rope_parameters", {{"rope_theta", 5000.0}}}})},
      {&granite,
       like_llama("granite", {{"logits_scaling", 6.0}, {"attention_multiplier", 0.015625}})},
      {&granitemoeshared, like_llama("granitemoeshared", {{"shared_intermediate_size", 0}})},
      {&nanochat,
       like_llama("nanochat", {{"head_dim", nullptr}, {"final_logit_softcapping", nullptr}})},
      {&nanochat, like_llama("nanochat", {{"head_dim", nullptr}})},
      {&gpt_neo, kGptNeo},
      {&mpt, kMpt},
      {&dots1, like_llama("dots1", {{"n_routed_experts", 4},
                                    {"num_experts_per_tok", 2},
                                    {"first_k_dense_replace", 0}})},
      {&deepseek_v2, like_latent("deepseek_v2", {{"q_lora_rank", nullptr}})},
      {&deepseek_v2, like_latent("deepseek_v2", {{"topk_method", "group_limited_greedy"}})},
      {&deepseek_v3, like_latent("deepseek_v3", {{"rope_interleave", false}})},
      {&glm4_moe_lite, like_latent("glm4_moe_lite")},
      {&qwen2_moe,
       like_llama("qwen2_moe", {{"use_sliding_window", true}, {"decoder_sparse_step", 2}})},
      {&ministral, like_llama("ministral", {{"sliding_window", nullptr}})},
      {&seed_oss, like_llama("seed_oss")},
      {&nemotron, like_llama("nemotron")},
      {&mamba2, kMamba2},
      {&bamba, like_llama("bamba", {{"mamba_n_heads", 6}, {"attn_layer_indices", {1, 3}}})},
      {&bamba, like_llama("bamba", {{"mamba_n_heads", 6}})},  // no layer has attention
      {&granitemoehybrid, like_llama("granitemoehybrid", kHybrid)},
      {&granitemoehybrid,
       like_llama("granitemoehybrid",
                  {{"layer_types", {"attention", "attention", "attention", "attention"}},
                   {"num_local_experts", 0}})},
      {&olmo_hybrid, like_llama("olmo_hybrid")},
  };
  for (const auto& [family, config] : cases) {
    SCOPED_TRACE(config.dump());
    Json given = config;
    if (family == &gpt_neo)
      given["attention_types"] = Json::parse(R"([[["global", "local"], 1], [["local"], 1]])");
    EXPECT_TRUE(can_express(*family, decoder_of(given)));
  }
}

}  // namespace
}  // namespace fovea::model
