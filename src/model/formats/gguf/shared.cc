#include "formats/gguf/shared.h"

#include <algorithm>

#include "base/error.h"
#include "families/shared.h"
#include "spec/mixers.h"

namespace fovea::model {
namespace {

Names common_names() {
  return {
      {"token_embd.weight", "embedding.token"},
      {"position_embd.weight", "decoder.position"},
      {"token_embd_norm.{weight,bias}", "decoder.norm.embedding.{weight,bias}"},
      {"output_norm.{weight,bias}", "decoder.norm.final.{weight,bias}"},
      {"output.weight", "head.output.weight"},
      {"blk.{i}.attn_norm.{weight,bias}", "decoder.{i}.norm.attention.input.{weight,bias}"},
      {"blk.{i}.post_attention_norm.weight", "decoder.{i}.norm.attention.output.weight"},
      {"blk.{i}.ffn_norm.{weight,bias}", "decoder.{i}.norm.ffn.input.{weight,bias}"},
      {"blk.{i}.post_ffw_norm.weight", "decoder.{i}.norm.ffn.output.weight"},
      {"blk.{i}.attn_{q,k,v,output}.{weight,bias}",
       "decoder.{i}.attention.{query,key,value,output}.{weight,bias}"},
      {"blk.{i}.attn_{q,k}_norm.weight", "decoder.{i}.attention.{query,key}_norm.weight"},
      {"blk.{i}.ffn_{gate,up,down}.{weight,bias}", "decoder.{i}.ffn.{gate,up,down}.{weight,bias}"},
      {"blk.{i}.ffn_gate_inp.weight", "decoder.{i}.ffn.router.weight"},
      {"blk.{i}.ffn_{gate,up,down}_exps.weight",
       "decoder.{i}.ffn.experts.{e}.{gate,up,down}.weight", Stored::stacked},
  };
}

constexpr const char* kKeyValueHeads = "attention.head_count_kv";

// By layer; 0 = the layer has the mixer `other` instead of attention.
void key_value_heads_by_layer(Config& io, StackSpec& stack, MixerKind other) {
  if (!io.reading()) {
    nlohmann::ordered_json heads = nlohmann::ordered_json::array();
    for (int64_t i = 0; i < stack.layers; ++i)
      heads.push_back(is_recurrent(stack, i) ? 0 : stack.attention.kv_heads);
    return io.write(kKeyValueHeads, heads);
  }
  nlohmann::json heads = io.value(kKeyValueHeads);
  if (heads == 0) heads = std::vector<int64_t>(static_cast<size_t>(stack.layers), 0);
  if (!heads.is_array()) return io(kKeyValueHeads, stack.attention.kv_heads, 0);
  for (const nlohmann::json& each : heads) {
    const int64_t count = each.is_number_integer() ? each.get<int64_t>() : -1;
    stack.mixers.push_back(count == 0 ? other : MixerKind::attention);
    if (count == 0) continue;
    if (stack.attention.kv_heads == 0) stack.attention.kv_heads = count;
    if (count < 1 || count != stack.attention.kv_heads)
      fail(ErrorKind::Unsupported, "{}: {} has {}; expected 0 or {}", io.name(), kKeyValueHeads,
           each.dump(), stack.attention.kv_heads);
  }
  if (std::ssize(heads) != stack.layers)
    fail(ErrorKind::BadFile, "{}: {} has {} values; expected {}, one per layer", io.name(),
         kKeyValueHeads, heads.size(), stack.layers);
}

}  // namespace

Family gguf_architecture(const char* name, void (*config)(Config& io, Spec& spec),
                         const Names& exceptions) {
  return {name,   {{"language model", {}}},
          config, exceptions + common_names(),
          "",     {"rope_freqs.weight", "rope_factors_short.weight", "rope_factors_long.weight"}};
}

Family gguf_with_classifier(Family architecture) {
  architecture.architectures.push_back(
      {kGgufClassifier, {.kind = HeadKind::sequence, .labels = 2, .pooling = Pooling::last}});
  architecture.names.push_back({"cls.output.weight", "sequence.output.weight"});
  return architecture;
}

Names gguf_fused_attention() {
  return {
      {"blk.{i}.attn_qkv.{weight,bias}", "decoder.{i}.attention.{query+key+value}.{weight,bias}"}};
}

Names gguf_rotary_pairs() {
  return {{"blk.{i}.attn_{q,k}.{weight,bias}", "decoder.{i}.attention.{query,key}.{weight,bias}",
           Stored::rotary_pairs}};
}

void gguf_stack_sizes(Config& io, Spec& s, StackSpec& stack) {
  io("vocab_size", s.vocabulary);
  io("context_length", s.context);
  io("embedding_length", s.width);
  io("block_count", stack.layers);
  io("feed_forward_length", stack.ffn.width);
  io("attention.head_count", stack.attention.heads);
}

void gguf_tied(Config& io, Spec& s) {
  bool own_output = !s.head.tied;
  io("output.weight", own_output, false);
  s.head.tied = !own_output;
}

void gguf_sizes(Config& io, Spec& s, std::optional<MixerKind> other) {
  StackSpec& d = *s.decoder;
  gguf_stack_sizes(io, s, d);
  if (other)
    key_value_heads_by_layer(io, d, *other);
  else
    io(kKeyValueHeads, d.attention.kv_heads, 0);
  io("attention.key_length", d.attention.head_width, 0);
  int64_t value_width = d.attention.head_width;
  io("attention.value_length", value_width, value_width);
  if (value_width != d.attention.head_width) {
    fail(ErrorKind::Unsupported, "{}: attention.value_length is {}; expected key_length, {}",
         io.name(), value_width, d.attention.head_width);
  }
  io.only("attention.causal", d.causal);
  gguf_tied(io, s);
}

void gguf_encoder_sizes(Config& io, Spec& s) {
  StackSpec& e = *s.encoder;
  gguf_stack_sizes(io, s, e);
  io(kKeyValueHeads, e.attention.kv_heads, 0);
  io.only("attention.causal", false);
  io.write("attention.causal", false);
}

int64_t gguf_head_width(const Spec& s) {
  const AttentionSpec& a = s.decoder->attention;
  if (a.heads < 1)
    fail(ErrorKind::Unsupported, "attention.head_count is {}; expected 1 or more", a.heads);
  return a.head_width > 0 ? a.head_width : s.width / a.heads;
}

void gguf_llama_shape(Config& io, Spec& s, std::optional<MixerKind> other) {
  StackSpec& d = *s.decoder;
  d.norm.kind = NormKind::rms;
  d.ffn.activation = Activation::silu;
  d.ffn.gated = true;
  gguf_sizes(io, s, other);
  io("attention.layer_norm_rms_epsilon", d.norm.epsilon, 1e-6f);
  io("blk.0.attn_q.bias", d.attention.bias, false);
  io("blk.0.attn_output.bias", d.attention.output_bias, false);
  io("blk.0.ffn_up.bias", d.ffn.bias, false);
  gguf_rope(io, s);
}

void gguf_gpt_shape(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  gguf_sizes(io, s);
  io("attention.layer_norm_epsilon", d.norm.epsilon, 1e-5f);
  io("blk.0.attn_qkv.bias", d.attention.bias, false);
  io("blk.0.attn_output.bias", d.attention.output_bias, false);
  io("blk.0.ffn_up.bias", d.ffn.bias, false);
}

void gguf_windows(Config& io, Spec& s, int64_t period) {
  constexpr const char* kPattern = "attention.sliding_window_pattern";
  StackSpec& d = *s.decoder;
  auto& windows = d.attention.windows;
  int64_t seen = 4096;
  for (const int64_t w : windows)
    if (w > 0) seen = d.causal ? w : 2 * (w - 1);
  io("attention.sliding_window", seen, seen);
  const int64_t window = d.causal ? seen : seen / 2 + 1;
  const auto rule = [&](int64_t i) { return i % period < period - 1; };
  if (!io.reading()) {
    std::vector<bool> local;
    bool by_rule = true;
    for (int64_t i = 0; i < d.layers; ++i) {
      local.push_back(!windows.empty() && windows[static_cast<size_t>(i)] > 0);
      by_rule = by_rule && local.back() == rule(i);
    }
    if (!by_rule) io.write(kPattern, local);
    return;
  }
  const nlohmann::json pattern = io.value(kPattern);
  if (pattern.is_number_integer() && pattern > 0) period = pattern.get<int64_t>();
  windows.clear();
  for (int64_t i = 0; i < d.layers; ++i) {
    const auto at = static_cast<size_t>(i);
    const bool listed = pattern.is_array() && at < pattern.size() && pattern[at].is_boolean();
    windows.push_back((listed ? pattern[at].get<bool>() : rule(i)) ? window : 0);
  }
}

void gguf_experts(Config& io, Spec& s) {
  ExpertsSpec& e = s.decoder->ffn.experts;
  if (!io.reading() && e.count == 0) return;
  io("expert_count", e.count, 0);
  io("expert_used_count", e.chosen, 2);
}

void gguf_leading_dense_layers(Config& io, Spec& s) {
  auto& layers = s.decoder->ffn.experts.dense_layers;
  int64_t dense = std::ssize(layers);
  io("leading_dense_block_count", dense, 0);
  if (!io.reading()) return;
  for (int64_t i = 0; i < std::min(dense, s.decoder->layers); ++i) layers.push_back(i);
}

void gguf_leave_further_layers(Config& io, StackSpec& stack) {
  if (!io.reading()) return;
  int64_t further = 0;
  io("nextn_predict_layers", further, 0);
  if (further >= stack.layers)
    fail(ErrorKind::BadFile, "{}: nextn_predict_layers is {}; expected less than block_count, {}",
         io.name(), further, stack.layers);
  stack.layers -= further;
}

void gguf_refuse_unknown(Config& io) {
  if (!io.reading()) return;
  for (const char* key : {"pooling_type", kGgufSelectionBias, kGgufQueryNorm}) io.value(key);
  io.refuse_unknown({"rope.scaling.finetuned", "tensor_data_layout", "expert_feed_forward_length",
                     "expert_weights_scale"});
}

}  // namespace fovea::model
