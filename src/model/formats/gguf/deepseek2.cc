// GGUF's architectures with the experts of DeepSeek: deepseek2 (DeepSeek-V2, DeepSeek-V3, GLM 4.7
// Flash), glm4moe and dots1.

#include <algorithm>

#include "base/error.h"
#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

// Refuses a model that is written, which llama.cpp would compute in another way.
void need(bool holds, const char* architecture, const char* expected) {
  if (!holds)
    fail(ErrorKind::Unsupported, "{}: llama.cpp would compute something else; expected {}",
         architecture, expected);
}

// For these numbers of layers, llama.cpp reads no latent of the queries.
bool is_lite(const Spec& s) {
  const int64_t layers = s.decoder->layers;
  return layers == 26 || layers == 27 || (layers == 48 && s.vocabulary == 128256);
}

void check_latent(const Spec& s) {
  constexpr const char* kName = "deepseek2";
  const StackSpec& d = *s.decoder;
  const RotarySpec& r = d.position.rotary;
  const bool scores = r.attention_factor == 1 && d.attention.scale > 0;
  need(r.scaling == RotaryScaling::none || (r.scaling == RotaryScaling::yarn && scores), kName,
       "no scaling of positions, or yarn with attention_factor 1 and a larger scale of the scores");
  need(d.latent.query_width == 0 || !is_lite(s), kName,
       "another number of layers with a latent of the queries");
}

// The file has a tenth of YaRN's multiple. llama.cpp assumes that mscale and mscale_all_dim are
// equal, so that sines and cosines have no factor.
void score_scale(Config& io, StackSpec& d) {
  constexpr const char* kTenth = "rope.scaling.yarn_log_multiplier";
  const auto short_number = [](double value) { return std::stod(fmt::format("{:.6g}", value)); };
  if (!io.reading()) {
    if (const float multiple = latent_multiple(d); multiple > 0)
      io.write(kTenth, short_number(multiple / 10.0));
    return;
  }
  float tenth = 0;
  io(kTenth, tenth, 0, 1e3f);
  if (tenth == 0 || d.position.rotary.scaling != RotaryScaling::yarn) return;
  d.attention.scale = latent_scale(d, static_cast<float>(short_number(10.0 * tenth)));
  d.position.rotary.attention_factor = 1;
}

// The cache has one key for all heads: the latent, which is also the value, and the rotated part.
// Older files have the widths of the keys and values of each head instead.
void latent_widths(Config& io, StackSpec& d) {
  AttentionSpec& a = d.attention;
  const LatentSpec& l = d.latent;
  int64_t heads = 1, key = l.width + l.rotary, value = l.width;
  int64_t key_of_head = a.head_width + l.rotary;
  io("attention.head_count_kv", heads, heads);
  io("attention.key_length", key, key);
  io("attention.value_length", value, value);
  io("attention.key_length_mla", key_of_head, key);
  io("attention.value_length_mla", a.value_width, value);
  a.head_width = key_of_head - l.rotary;
  if (a.head_width < 1)
    fail(ErrorKind::BadFile, "{}: keys are {} wide; expected more than {}, the rotated numbers",
         io.name(), key_of_head, l.rotary);
}

void latent_shape(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  constexpr const char* kQueryLatent = "attention.q_lora_rank";
  LatentSpec& l = d.latent;
  gguf_stack_sizes(io, s, d);
  gguf_tied(io, s);
  io("attention.layer_norm_rms_epsilon", d.norm.epsilon, 1e-6f);
  gguf_latent_rope(io, s);
  if (io.value(kQueryLatent) != 0) io(kQueryLatent, l.query_width, 0);
  io("attention.kv_lora_rank", l.width);
  latent_widths(io, d);
  score_scale(io, d);
}

// GGUF's numbers of functions that turn logits into scores.
constexpr int64_t kSoftmax = 1, kSigmoid = 2;

void experts(Config& io, Spec& s, const char* architecture) {
  ExpertsSpec& e = s.decoder->ffn.experts;
  if (!io.reading()) need(e.count > 0 && e.shared > 0, architecture, "experts and shared ones");
  gguf_experts(io, s);
  gguf_leading_dense_layers(io, s);
  io("expert_feed_forward_length", e.width, 0);
  io("expert_shared_count", e.shared, 0);
  io("expert_weights_scale", e.scale, 1, 1e6f);
  if (e.scale == 0) e.scale = 1;
  io("expert_weights_norm", e.normalise, false);
  if (io.reading() || e.groups > 1) {
    io("expert_group_count", e.groups, 1);
    io("expert_group_used_count", e.groups_chosen, 1);
  }
  io(kGgufSelectionBias, e.selection_bias, false);
  int64_t score = e.score == ExpertScore::sigmoid ? kSigmoid : kSoftmax;
  io("expert_gating_func", score, e.selection_bias ? kSigmoid : kSoftmax);
  if (score != kSoftmax && score != kSigmoid)
    fail(ErrorKind::Unsupported, "{}: expert_gating_func is {}; expected {} or {}", io.name(),
         score, kSoftmax, kSigmoid);
  e.score = score == kSigmoid ? ExpertScore::sigmoid : ExpertScore::softmax;
}

void gguf_deepseek2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  if (!io.reading()) check_latent(s);
  d.norm.kind = NormKind::rms;
  d.ffn.activation = Activation::silu;
  d.ffn.gated = true;
  latent_shape(io, s);
  experts(io, s, "deepseek2");
  gguf_leave_further_layers(io, d);
  if (!io.reading()) return;
  d.mixers = {MixerKind::latent};
  d.latent.epsilon = 1e-6f;  // of all models of this kind; llama.cpp uses that of the other norms
  d.position.rotary.neighbours = true;
  d.attention.bias = d.attention.output_bias = d.ffn.bias = false;
  gguf_refuse_unknown(io);
}

void gguf_glm4_moe_config(Config& io, Spec& s) {
  constexpr const char* kName = "glm4moe";
  StackSpec& d = *s.decoder;
  bool normed = d.attention.norm == QueryKeyNorm::head;
  io(kGgufQueryNorm, normed, false);
  d.attention.norm = normed ? QueryKeyNorm::head : QueryKeyNorm::none;
  if (!io.reading()) need(!d.attention.output_bias, kName, "no bias of attention's output");
  gguf_llama_shape(io, s);
  experts(io, s, kName);
  gguf_leave_further_layers(io, d);
  gguf_refuse_unknown(io);
}

void gguf_dots1_config(Config& io, Spec& s) {
  constexpr const char* kName = "dots1";
  StackSpec& d = *s.decoder;
  const AttentionSpec& a = d.attention;
  if (!io.reading()) {
    need(a.kv_heads == a.heads && !s.head.tied, kName,
         "as many keys as queries, and head.tied false");
    need(d.position.rotary.share == 1, kName, "rotary positions of whole heads");
  }
  d.attention.norm = QueryKeyNorm::head;
  gguf_llama_shape(io, s);
  experts(io, s, kName);
  gguf_refuse_unknown(io);
}

bool has_no_query_latent(const Spec& spec) { return spec.decoder->latent.query_width == 0; }

const Names deepseek2_names = {
    {"blk.{i}.attn_q.weight", "decoder.{i}.latent.query.weight", Stored::rotary_last,
     has_no_query_latent},
    {"blk.{i}.attn_q_a.weight", "decoder.{i}.latent.query.weight"},
    {"blk.{i}.attn_q_b.weight", "decoder.{i}.latent.query_up.weight", Stored::rotary_last},
    {"blk.{i}.attn_{q,kv}_a_norm.weight", "decoder.{i}.latent.{query,latent}_norm.weight"},
    {"blk.{i}.attn_kv_a_mqa.weight", "decoder.{i}.latent.{latent+rotary_key}.weight"},
    {"blk.{i}.attn_k_b.weight", "decoder.{i}.latent.key_up.weight", Stored::heads_transposed},
    {"blk.{i}.attn_v_b.weight", "decoder.{i}.latent.value_up.weight", Stored::heads},
    {"blk.{i}.attn_output.weight", "decoder.{i}.latent.output.weight"}};
const Names older_names = {{"blk.{i}.attn_kv_b.weight",
                            "decoder.{i}.latent.{key_up+value_up}.weight", Stored::by_query_head}};
const Names one_norm_between = {
    {"blk.{i}.post_attention_norm.weight", "decoder.{i}.norm.ffn.input.weight"}};

Family with_experts(const char* name, void (*config)(Config& io, Spec& spec), const Names& names,
                    const Names& older = {}) {
  const Names experts = {
      {"blk.{i}.exp_probs_b.bias", "decoder.{i}.ffn.router.selection_bias"},
      {"blk.{i}.ffn_{gate,up,down}_shexp.weight", "decoder.{i}.ffn.shared.{gate,up,down}.weight"}};
  Family family = gguf_architecture(name, config, names + experts);
  family.names_in_memory = older;
  family.predicts_further = true;
  return family;
}

}  // namespace

const Family gguf_deepseek2 =
    with_experts("deepseek2", gguf_deepseek2_config, deepseek2_names, older_names);
const Family gguf_glm4_moe = with_experts("glm4moe", gguf_glm4_moe_config, one_norm_between);
const Family gguf_dots1 = with_experts("dots1", gguf_dots1_config, {});

}  // namespace fovea::model
