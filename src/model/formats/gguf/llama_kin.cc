// GGUF's architectures of relatives of LLaMA with other norms, positions or factors.

#include <algorithm>

#include "base/error.h"
#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

// LayerNorm instead of RMSNorm.
void layer_norm_shape(Config& io, Spec& s, Activation activation, bool gated) {
  StackSpec& d = *s.decoder;
  d.ffn.activation = activation;
  d.ffn.gated = gated;
  gguf_sizes(io, s);
  io("attention.layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("blk.0.attn_q.bias", d.attention.bias, false);
  io("blk.0.attn_output.bias", d.attention.output_bias, false);
  io("blk.0.ffn_up.bias", d.ffn.bias, false);
  gguf_rope(io, s);
}

// Every fourth layer has no positions: a rule of llama.cpp.
void unrotated_by_rule(StackSpec& d) {
  d.position.rotary.unrotated.clear();
  for (int64_t i = 3; i < d.layers; i += 4) d.position.rotary.unrotated.push_back(i);
}

// Granite: LLaMA with factors.
void gguf_granite_config(Config& io, Spec& s) {
  gguf_llama_shape(io, s);
  gguf_granite_factors(io, s);
  gguf_refuse_unknown(io);
}

void gguf_arcee_config(Config& io, Spec& s) {
  gguf_llama_shape(io, s);
  s.decoder->ffn.activation = Activation::relu_squared;
  s.decoder->ffn.gated = false;
  gguf_refuse_unknown(io);
}

void gguf_smollm3_config(Config& io, Spec& s) {
  gguf_llama_shape(io, s);
  unrotated_by_rule(*s.decoder);
  gguf_refuse_unknown(io);
}

// Its files rotate neighbouring rows, as its models do.
void gguf_ernie4_5_config(Config& io, Spec& s) {
  gguf_llama_shape(io, s);
  s.decoder->position.rotary.neighbours = true;
  gguf_refuse_unknown(io);
}

void gguf_glm4_config(Config& io, Spec& s) {
  s.decoder->placement = {true, true, false};
  gguf_llama_shape(io, s);
  s.decoder->position.rotary.neighbours = true;
  gguf_refuse_unknown(io);
}

// llama.cpp gives local layers to the model of 64 layers only, which is refused.
void gguf_exaone4_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.placement = {false, true, false};
  d.attention.norm = QueryKeyNorm::head;
  gguf_llama_shape(io, s);
  if (d.layers == 64)
    fail(ErrorKind::Unsupported,
         "{}: block_count is 64, for which llama.cpp has local layers; expected another number",
         io.reading() ? io.name() : "exaone4");
  gguf_refuse_unknown(io);
}

void gguf_olmoe_config(Config& io, Spec& s) {
  s.decoder->attention.norm = QueryKeyNorm::all;
  s.decoder->ffn.experts.normalise = false;
  gguf_llama_shape(io, s);
  const AttentionSpec& a = s.decoder->attention;
  if (!io.reading() && a.kv_heads != a.heads)
    fail(ErrorKind::Unsupported, "attention.kv_heads is {}; expected {}, as in llama.cpp's olmoe",
         a.kv_heads, a.heads);
  gguf_experts(io, s);
  gguf_refuse_unknown(io);
}

void gguf_seed_oss_config(Config& io, Spec& s) {
  gguf_llama_shape(io, s);
  gguf_refuse_unknown(io);
}

void gguf_starcoder2_config(Config& io, Spec& s) {
  layer_norm_shape(io, s, Activation::gelu_tanh, false);
  gguf_refuse_unknown(io);
}

void gguf_stablelm_config(Config& io, Spec& s) {
  layer_norm_shape(io, s, Activation::silu, true);
  io("use_parallel_residual", s.decoder->parallel, false);
  s.decoder->one_norm = s.decoder->parallel;
  gguf_refuse_unknown(io);
}

void gguf_phi2_config(Config& io, Spec& s) {
  s.decoder->parallel = s.decoder->one_norm = true;
  s.head.bias = true;
  layer_norm_shape(io, s, Activation::gelu_tanh, false);
  gguf_refuse_unknown(io);
}

void gguf_nemotron_config(Config& io, Spec& s) {
  s.decoder->norm.unit_offset = true;
  layer_norm_shape(io, s, Activation::relu_squared, false);
  gguf_refuse_unknown(io);
}

// Command R: parallel sublayers behind one norm without a bias, and a factor of the logits.
void command_r_shape(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.parallel = d.one_norm = true;
  d.norm.bias = false;
  layer_norm_shape(io, s, Activation::silu, true);
  d.position.rotary.neighbours = true;
  io("logit_scale", s.head.scale, 1, 1e6f);
}

void gguf_command_r_config(Config& io, Spec& s) {
  command_r_shape(io, s);
  gguf_refuse_unknown(io);
}

// Three local layers before each global one, which has no positions.
void gguf_cohere2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  command_r_shape(io, s);
  int64_t window = 4096;
  for (const int64_t w : d.attention.windows) window = w > 0 ? w : window;
  io("attention.sliding_window", window, window);
  unrotated_by_rule(d);
  d.attention.windows.assign(static_cast<size_t>(std::max<int64_t>(d.layers, 0)), window);
  for (const int64_t layer : d.position.rotary.unrotated)
    d.attention.windows[static_cast<size_t>(layer)] = 0;
  gguf_refuse_unknown(io);
}

const Names fused_gate = {{"blk.{i}.ffn_up.weight", "decoder.{i}.ffn.{gate+up}.weight"}};
const Names plus_one = {{"output_norm.weight", "decoder.norm.final.weight", Stored::one_plus},
                        {"blk.{i}.{attn,ffn}_norm.weight",
                         "decoder.{i}.norm.{attention,ffn}.input.weight", Stored::one_plus}};

}  // namespace

void gguf_granite_factors(Config& io, Spec& s) {
  AttentionSpec& attention = s.decoder->attention;
  io("embedding_scale", s.embedding_scale, 1, 1e6f);
  io("residual_scale", s.decoder->sublayer_scale, 1, 1e6f);
  if (io.reading() || attention.scale > 0) io("attention.scale", attention.scale, 0, 1e6f);
  float divisor = 1 / s.head.scale;
  io("logit_scale", divisor, 1, 1e6f);
  s.head.scale = 1 / divisor;
}

const Family gguf_granite = gguf_architecture("granite", gguf_granite_config, gguf_rotary_pairs());
const Family gguf_arcee = gguf_architecture("arcee", gguf_arcee_config, gguf_rotary_pairs());
const Family gguf_smollm3 = gguf_architecture("smollm3", gguf_smollm3_config, gguf_rotary_pairs());
const Family gguf_ernie4_5 = gguf_architecture("ernie4_5", gguf_ernie4_5_config);
const Family gguf_glm4 = gguf_architecture("glm4", gguf_glm4_config, fused_gate);
const Family gguf_exaone4 = gguf_architecture("exaone4", gguf_exaone4_config);
const Family gguf_olmoe = gguf_architecture("olmoe", gguf_olmoe_config);
const Family gguf_seed_oss = gguf_architecture(
    "seed_oss", gguf_seed_oss_config,
    {{"blk.{i}.post_attention_norm.weight", "decoder.{i}.norm.ffn.input.weight"}});
const Family gguf_starcoder2 = gguf_architecture("starcoder2", gguf_starcoder2_config);
const Family gguf_stablelm = gguf_architecture("stablelm", gguf_stablelm_config);
const Family gguf_phi2 =
    gguf_architecture("phi2", gguf_phi2_config, {{"output.bias", "head.output.bias"}});
const Family gguf_nemotron = gguf_architecture("nemotron", gguf_nemotron_config, plus_one);
const Family gguf_command_r = gguf_architecture("command-r", gguf_command_r_config);
const Family gguf_cohere2 = gguf_architecture("cohere2", gguf_cohere2_config);

}  // namespace fovea::model
