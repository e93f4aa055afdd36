#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/json.h"
#include "families/registry.h"
#include "families/shared.h"
#include "spec/mixers.h"

namespace fovea::model {
namespace {

// The keys for the sizes of Mamba-2 layers, and the defaults that differ.
struct MambaKeys {
  const char *heads, *head_width, *groups, *states, *tokens, *expansion;
  const char *convolution_bias, *bias;
  int64_t absent_groups, absent_states;
};
constexpr MambaKeys kAlone = {
    "num_heads",     "head_dim", "n_groups", "state_size", "conv_kernel", "expand",
    "use_conv_bias", "use_bias", 8,          128};
constexpr MambaKeys kBesideAttention = {"mamba_n_heads",
                                        "mamba_d_head",
                                        "mamba_n_groups",
                                        "mamba_d_state",
                                        "mamba_d_conv",
                                        "mamba_expand",
                                        "mamba_conv_bias",
                                        "mamba_proj_bias",
                                        1,
                                        256};

// transformers writes infinity as an object, which older versions do not read: they and newer ones
// have no limits if the key is missing.
void step_limits(Config& io, StateSpaceSpec& m) {
  constexpr const char* kKey = "time_step_limit";
  const nlohmann::json infinity = {{"__float__", "Infinity"}};
  const nlohmann::json given = io.value(kKey);
  if (!io.reading()) {
    const auto number = [](float x) { return std::stod(fmt::format("{}", x)); };
    if (m.least_step > 0 || m.most_step > 0)
      io.write(kKey,
               {number(m.least_step), m.most_step > 0 ? nlohmann::ordered_json(number(m.most_step))
                                                      : nlohmann::ordered_json(infinity)});
    return;
  }
  if (given.is_null()) return;
  const auto is_limit = [](const nlohmann::json& x) { return x.is_number() && x >= 0 && x <= 1e6; };
  const bool two = given.is_array() && given.size() == 2 && is_limit(given[0]);
  if (!two || (given[1] != infinity && (!is_limit(given[1]) || given[1] <= given[0])))
    fail(ErrorKind::BadFile, "{}: {} is {}; expected two rising numbers, the second up to Infinity",
         io.name(), kKey, given.dump());
  m.least_step = given[0].get<float>();
  m.most_step = given[1] == infinity ? 0 : given[1].get<float>();
}

void state_space(Config& io, Spec& s, const MambaKeys& keys) {
  StateSpaceSpec& m = s.decoder->state_space;
  int64_t expansion = std::max<int64_t>(1, m.heads * m.head_width / s.width);
  io(keys.expansion, expansion, 2);
  io(keys.heads, m.heads, 128);
  const int64_t inner = expansion * s.width;
  const nlohmann::json width = io.value(keys.head_width);
  if (io.reading() && (width == "auto" || (width.is_null() && &keys == &kBesideAttention)))
    m.head_width = inner / m.heads;
  else
    io(keys.head_width, m.head_width, 64);
  if (m.heads * m.head_width != inner)
    fail(ErrorKind::BadFile, "{}: {} heads are {} wide; expected {} x {}, {} x hidden_size",
         io.name(), m.heads, m.head_width, keys.heads, keys.head_width, keys.expansion);
  io(keys.groups, m.groups, keys.absent_groups);
  io(keys.states, m.state_width, keys.absent_states);
  io(keys.tokens, m.convolution, 4);
  io(keys.convolution_bias, m.convolution_bias, true);
  io.only(keys.bias, false);
  step_limits(io, m);
  if (!io.reading() && (m.norm_groups != m.groups || !m.norm || m.norm_first))
    fail(ErrorKind::Unsupported, "state_space.norm_groups is {}; expected {}, after the gate",
         m.norm_groups, m.groups);
  m.norm_groups = m.groups;
}

// Mamba-2 (Dao and Gu 2024): state spaces alone, without feed-forward layers and positions.
void mamba2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  io("hidden_size", s.width);
  io("num_hidden_layers", d.layers);
  io("max_position_embeddings", s.context, int64_t{1} << 20);  // no limit of the model
  io("layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("tie_word_embeddings", s.head.tied, false);
  io.only("hidden_act", "silu");
  if (io.reading()) {
    d.mixers = {MixerKind::state_space};
    d.norm.kind = NormKind::rms;
    d.position.kind = PositionKind::none;
    d.ffn.present = false;
    d.attention.heads = 1;  // there is no attention
  }
  state_space(io, s, kAlone);
  if (io.reading())
    io.refuse_unknown({"chunk_size", "residual_in_fp32", "rescale_prenorm_residual",
                       "time_step_floor", "time_step_max", "time_step_min", "time_step_rank"});
}

// Bamba (IBM, Princeton and UIUC 2024): LLaMA, with Mamba-2 in most layers instead of attention.
void bamba_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  llama_sizes(io, s, {.epsilon = 1e-5f, .kv_heads = 8, .rotary_share = 0.5f});
  io.padding(s, 0);
  io("attention_bias", d.attention.bias, false);
  d.attention.output_bias = d.attention.bias;
  io("mlp_bias", d.ffn.bias, false);
  std::vector<int64_t> attends;
  for (int64_t i = 0; i < d.layers; ++i)
    if (!io.reading() && mixer_of(d, i) == MixerKind::attention) attends.push_back(i);
  io("attn_layer_indices", attends);
  if (io.reading()) {
    d.mixers.assign(static_cast<size_t>(d.layers), MixerKind::state_space);
    for (const int64_t layer : attends)
      if (layer < d.layers) d.mixers[static_cast<size_t>(layer)] = MixerKind::attention;
  }
  state_space_beside_attention(io, s);
  const int64_t head = d.attention.head_width > 0
                           ? d.attention.head_width
                           : s.width / std::max<int64_t>(1, d.attention.heads);
  io.only("attn_rotary_emb", head / 2);  // an older spelling of the share
  if (io.reading()) io.refuse_unknown(kStateSpaceKeys);
}

const Names mamba2_names =
    Names{{"backbone.embeddings.weight", "embedding.token"},
          {"backbone.layers.{i}.norm.weight", "decoder.{i}.norm.attention.input.weight"},
          {"backbone.norm_f.weight", "decoder.norm.final.weight"},
          {"lm_head.weight", "head.output.weight"}} +
    state_space_names("backbone.layers.{i}.mixer.");

const Names bamba_names = Names{{"model.final_layernorm.weight", "decoder.norm.final.weight"},
                                {"model.layers.{i}.{input_layernorm,pre_ff_layernorm}.weight",
                                 "decoder.{i}.norm.{attention,ffn}.input.weight"},
                                {"model.layers.{i}.feed_forward.{gate,up,down}_proj.{weight,bias}",
                                 "decoder.{i}.ffn.{gate,up,down}.{weight,bias}"}} +
                          llama_attention_names() + state_space_names("model.layers.{i}.mamba.");

}  // namespace

void state_space_beside_attention(Config& io, Spec& s) {
  const auto& mixers = s.decoder->mixers;
  if (std::ranges::find(mixers, MixerKind::state_space) != mixers.end())
    state_space(io, s, kBesideAttention);
}

Names state_space_names(const std::string& layer) {
  return {{layer + "in_proj.weight", "decoder.{i}.state_space.{gate+value+key+query+step}.weight"},
          {layer + "conv1d.weight",
           "decoder.{i}.state_space."
           "{value_convolution+key_convolution+query_convolution}",
           Stored::column_convolution},
          {layer + "conv1d.bias",
           "decoder.{i}.state_space."
           "{value_convolution_bias+key_convolution_bias+query_convolution_bias}"},
          {layer + "dt_bias", "decoder.{i}.state_space.step.bias"},
          {layer + "A_log", "decoder.{i}.state_space.rate"},
          {layer + "D", "decoder.{i}.state_space.skip"},
          {layer + "norm.weight", "decoder.{i}.state_space.norm.weight"},
          {layer + "out_proj.weight", "decoder.{i}.state_space.output.weight"}};
}

const Family mamba2 = {"mamba2", language_models("Mamba2"), mamba2_config, mamba2_names,
                       "backbone."};
const Family bamba = {"bamba", language_models("Bamba"), bamba_config, bamba_names, "model."};

}  // namespace fovea::model
