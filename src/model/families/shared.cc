#include "families/shared.h"

#include <cmath>

#include "base/error.h"
#include "base/math.h"
#include "spec/mixers.h"

namespace fovea::model {

Names operator+(Names a, const Names& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Architecture> decoder_architectures(const std::string& stem,
                                                const std::string& language_model) {
  return {{language_model, {}},
          {stem + "ForSequenceClassification",
           {.kind = HeadKind::sequence, .labels = 2, .pooling = Pooling::last}},
          {stem + "ForTokenClassification", {.kind = HeadKind::token, .labels = 2, .bias = true}},
          {stem + "ForQuestionAnswering", {.kind = HeadKind::span, .labels = 2, .bias = true}},
          {stem + "Model", {.kind = HeadKind::pooled, .pooling = Pooling::last}}};
}

std::vector<Architecture> language_models(const std::string& stem) {
  return {{stem + "ForCausalLM", {}},
          {stem + "Model", {.kind = HeadKind::pooled, .pooling = Pooling::last}}};
}

std::vector<Architecture> with_head_bias(std::vector<Architecture> architectures) {
  architectures[0].head.bias = true;
  return architectures;
}

Names with_decoder_heads(Names names, const std::string& tagger) {
  return std::move(names) + Names{{"score.weight", "sequence.output.weight"},
                                  {tagger + ".{weight,bias}", "tagger.output.{weight,bias}"},
                                  {"qa_outputs.{weight,bias}", "span.output.{weight,bias}"}};
}

Names with_own_prefix_of_answers(const Names& names) {
  const std::string prefix = "model.";
  Names all;
  for (const NameRule& rule : names) {
    if (rule.when != nullptr || !rule.theirs.starts_with(prefix)) continue;
    NameRule own = rule;
    own.theirs = "transformer." + rule.theirs.substr(prefix.size());
    own.when = [](const Spec& spec) { return spec.head.kind == HeadKind::span; };
    all.push_back(std::move(own));
  }
  return std::move(all) + names;
}

HeadSpec head_of_end(int64_t labels) {
  return {.kind = HeadKind::sequence,
          .labels = labels,
          .bias = true,
          .transform = true,
          .activation = Activation::tanh,
          .pooling = Pooling::last};
}

Names names_of_head_of_end() {
  return {
      {"classification_head.{dense,out_proj}.{weight,bias}",
       "sequence.{transform,output}.{weight,bias}"},
  };
}

void classifier_padding(Config& io, Spec& s) {
  if (s.head.kind == HeadKind::sequence) io.padding(s);
}

void tie_embeddings(Config& io, Spec& s) {
  const bool words = s.head.kind == HeadKind::language_model;
  bool tied = !words || s.head.tied;
  io("tie_word_embeddings", tied, true);
  s.head.tied = words && tied;
}

void llama_sizes(Config& io, Spec& s, const LlamaDefaults& defaults) {
  StackSpec& d = s.decoder ? *s.decoder : *s.encoder;
  d.norm.kind = NormKind::rms;
  d.position.kind = PositionKind::rotary;
  d.ffn.gated = true;
  if (io.reading()) d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  io("vocab_size", s.vocabulary);
  io.padding(s);
  io("hidden_size", s.width);
  io("num_hidden_layers", d.layers);
  io("num_attention_heads", d.attention.heads);
  io("num_key_value_heads", d.attention.kv_heads, defaults.kv_heads);
  io("head_dim", d.attention.head_width, defaults.head_width);
  if (defaults.ffn_width > 0)
    io("intermediate_size", d.ffn.width, defaults.ffn_width);
  else
    io("intermediate_size", d.ffn.width);
  if (defaults.activation_key != nullptr)
    io(defaults.activation_key, d.ffn.activation, defaults.activation);
  io(defaults.epsilon_key, d.norm.epsilon, defaults.epsilon);
  io("attention_dropout", s.dropout.attention, 0);
  io("tie_word_embeddings", s.head.tied, defaults.tied);
  if (io.reading()) d.position.rotary.share = defaults.rotary_share;
  const bool whole = !io.reading() && d.position.rotary.share == 1;
  if (whole && defaults.rotary_share != 1) io.write("partial_rotary_factor", 1.0);
  int64_t alpha_width = 0;
  if (io.reading() && defaults.alpha)
    alpha_width = d.attention.head_width > 0 ? d.attention.head_width : s.width / d.attention.heads;
  io.rope(s.context, d.position.rotary,
          {.theta = defaults.theta,
           .by_layer_type = defaults.rope_by_layer_type,
           .original_context = defaults.original_context,
           .query_growth = defaults.query_growth,
           .alpha_width = alpha_width,
           .mscales = defaults.mscales});
}

Names layer_norm_biases() {
  return {{"model.layers.{i}.{input,post_attention}_layernorm.bias",
           "decoder.{i}.norm.{attention,ffn}.input.bias"},
          {"model.norm.bias", "decoder.norm.final.bias"}};
}

Names expert_names() {
  return {{"model.layers.{i}.mlp.gate.weight", "decoder.{i}.ffn.router.weight"},
          {"model.layers.{i}.mlp.experts.{e}.{gate,up,down}_proj.weight",
           "decoder.{i}.ffn.experts.{e}.{gate,up,down}.weight"}};
}

Names expert_names_in_memory() {
  return {{"model.layers.{i}.mlp.experts.gate_up_proj",
           "decoder.{i}.ffn.experts.{e}.{gate+up}.weight", Stored::stacked},
          {"model.layers.{i}.mlp.experts.down_proj", "decoder.{i}.ffn.experts.{e}.down.weight",
           Stored::stacked}};
}

void mixers_by_type(Config& io, StackSpec& stack, MixerKind mixer, const char* name,
                    const std::function<bool(int64_t layer)>& attends, const char* attention) {
  if (!io.reading()) {
    nlohmann::ordered_json names = nlohmann::ordered_json::array();
    for (int64_t i = 0; i < stack.layers; ++i)
      names.push_back(mixer_of(stack, i) == mixer ? name : attention);
    return io.write("layer_types", names);
  }
  const nlohmann::json types = io.value("layer_types");
  if (!types.is_null() && (!types.is_array() || std::ssize(types) != stack.layers))
    fail(ErrorKind::BadFile, "{}: layer_types has {} names; expected {}, one per layer", io.name(),
         types.size(), stack.layers);
  const auto newer = [](const nlohmann::json& type) -> nlohmann::json {
    if (type == "mamba") return "linear_attention";
    return type == "attention" ? "full_attention" : type;
  };
  for (int64_t i = 0; i < stack.layers; ++i) {
    const bool full = types.is_null() ? attends(i) : newer(types[i]) == newer(attention);
    if (!types.is_null() && !full && newer(types[i]) != newer(name))
      fail(ErrorKind::Unsupported, "{}: layer_types has {}; expected {} or {}", io.name(),
           types[i].dump(), name, attention);
    stack.mixers.push_back(full ? MixerKind::attention : mixer);
  }
}

void routed_expert_sizes(Config& io, ExpertsSpec& e, const GroupedExperts& defaults) {
  if (defaults.count > 0)
    io("n_routed_experts", e.count, defaults.count);
  else
    io("n_routed_experts", e.count);
  if (defaults.chosen > 0)
    io("num_experts_per_tok", e.chosen, defaults.chosen);
  else
    io("num_experts_per_tok", e.chosen);
  io("moe_intermediate_size", e.width, defaults.width);
  if (io.reading() || e.shared > 0) io("n_shared_experts", e.shared, defaults.shared);
  io("routed_scaling_factor", e.scale, defaults.scale, 1e6f);
}

void sigmoid_router(Config& io, ExpertsSpec& e, const GroupedExperts& defaults) {
  e.score = ExpertScore::sigmoid;
  e.selection_bias = true;
  io("n_group", e.groups, defaults.groups);
  io("topk_group", e.groups_chosen, defaults.groups_chosen);
  io("norm_topk_prob", e.normalise, defaults.normalise);
}

void leading_dense_layers(Config& io, StackSpec& stack, int64_t absent) {
  auto& layers = stack.ffn.experts.dense_layers;
  int64_t dense = std::ssize(layers);
  if (!io.reading()) return io.write("first_k_dense_replace", dense);
  const nlohmann::json first = io.value("first_k_dense_replace");
  dense = first.is_null() ? absent : 0;
  if (!first.is_null() && first != 0) io("first_k_dense_replace", dense, 0);
  for (int64_t i = 0; i < std::min(dense, stack.layers); ++i) layers.push_back(i);
}

void grouped_experts(Config& io, StackSpec& stack, const GroupedExperts& defaults) {
  routed_expert_sizes(io, stack.ffn.experts, defaults);
  sigmoid_router(io, stack.ffn.experts, defaults);
  leading_dense_layers(io, stack, defaults.dense);
}

Names grouped_expert_names() {
  return {{"model.layers.{i}.mlp.gate.e_score_correction_bias",
           "decoder.{i}.ffn.router.selection_bias"},
          {"model.layers.{i}.mlp.shared_experts.{gate,up,down}_proj.weight",
           "decoder.{i}.ffn.shared.{gate,up,down}.weight"}};
}

float latent_scale(const StackSpec& stack, float multiple) {
  const float factor = stack.position.rotary.factor;
  if (factor <= 1 || multiple == 0) return 0;
  const float growth = 0.1f * multiple * math::log(factor) + 1;
  const int64_t width = stack.attention.head_width + stack.latent.rotary;
  return growth * growth / std::sqrt(static_cast<float>(width));
}

float latent_multiple(const StackSpec& stack) {
  const double scale = stack.attention.scale, factor = stack.position.rotary.factor;
  if (scale == 0) return 0;
  const auto width = static_cast<double>(stack.attention.head_width + stack.latent.rotary);
  const double exact =
      factor > 1 ? 10 * (std::sqrt(scale * std::sqrt(width)) - 1) / math::log(factor) : 0;
  for (int digits = 1; digits <= 6 && exact > 0; ++digits) {
    const float rounded = std::stof(fmt::format("{:.{}g}", exact, digits));
    if (latent_scale(stack, rounded) == stack.attention.scale) return rounded;
  }
  fail(ErrorKind::Unsupported, "attention.scale is {}; expected 0, or that of a multiple for yarn",
       stack.attention.scale);
}

void windows_of_pattern(Config& io, StackSpec& stack, int64_t period) {
  int64_t window = 4096;
  for (const int64_t w : stack.attention.windows) window = w > 0 ? w : window;
  io("sliding_window", window, window);
  const auto given = io.value("sliding_window_pattern");
  if (given.is_number_integer() && given > 0) period = given.get<int64_t>();
  std::vector<bool> pattern(static_cast<size_t>(period), true);
  pattern.back() = false;
  io.layer_types(stack, window, pattern);
}

void rotate_only_local(StackSpec& stack) {
  const auto& windows = stack.attention.windows;
  for (int64_t i = 0; i < std::ssize(windows); ++i)
    if (windows[static_cast<size_t>(i)] == 0) stack.position.rotary.unrotated.push_back(i);
}

void window_of_all(Config& io, StackSpec& stack, int64_t absent) {
  auto& windows = stack.attention.windows;
  if (!io.reading()) {
    const int64_t window = windows.empty() ? 0 : windows[0];
    io.write("sliding_window", window > 0 ? nlohmann::ordered_json(window) : nullptr);
    return;
  }
  int64_t window = io.says("sliding_window") ? 0 : absent;
  io("sliding_window", window, window);
  windows = {window};
}

}  // namespace fovea::model
