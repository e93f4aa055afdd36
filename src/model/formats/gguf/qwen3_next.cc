// GGUF's architectures with the gated delta rule.

#include <algorithm>

#include "base/error.h"
#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"
#include "spec/mixers.h"

namespace fovea::model {
namespace {

// Which of `all` layers of the file have full attention: a list, or else every n-th layer.
void mixers(Config& io, StackSpec& d, int64_t all) {
  constexpr const char *kList = "attention.recurrent_layers", *kEvery = "full_attention_interval";
  int64_t every = 4;
  if (!io.reading()) {
    nlohmann::ordered_json linear = nlohmann::ordered_json::array();
    for (int64_t i = 0; i < d.layers; ++i)
      linear.push_back(mixer_of(d, i) == MixerKind::gated_delta);
    return io.write(kList, linear);
  }
  io(kEvery, every, 4);
  const nlohmann::json listed = io.value(kList);
  if (!listed.is_null() && (!listed.is_array() || std::ssize(listed) != all))
    fail(ErrorKind::BadFile, "{}: {} has {} values; expected {}, one per layer", io.name(), kList,
         listed.is_array() ? listed.size() : 1, all);
  for (int64_t i = 0; i < d.layers; ++i) {
    const bool full =
        listed.is_null() ? (i + 1) % every == 0 : listed[i] == false || listed[i] == 0;
    d.mixers.push_back(full ? MixerKind::attention : MixerKind::gated_delta);
  }
}

void delta_shape(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  d.attention.norm = QueryKeyNorm::head;
  d.attention.gated = true;
  d.norm.unit_offset = true;
  gguf_llama_shape(io, s);
  const int64_t all = d.layers;
  gguf_leave_further_layers(io, d);
  mixers(io, d, all);
  io("ssm.conv_kernel", d.delta.convolution, 4);
  io("ssm.time_step_rank", d.delta.heads);
  io("ssm.group_count", d.delta.key_heads);
  io("ssm.state_size", d.delta.key_width);
  int64_t values = d.delta.heads * d.delta.value_width;
  io("ssm.inner_size", values);
  if (d.delta.heads < 1 || values != d.delta.heads * d.delta.key_width)
    fail(ErrorKind::Unsupported,
         "{}: ssm.inner_size is {}; expected ssm.time_step_rank x ssm.state_size",
         io.reading() ? io.name() : "qwen3next", values);
  d.delta.value_width = d.delta.key_width;
}

void shared_expert(Config& io, Spec& s) {
  ExpertsSpec& e = s.decoder->ffn.experts;
  gguf_experts(io, s);
  io("expert_feed_forward_length", e.width, 0);
  e.shared = 1;
  e.shared_gate = true;
  io("expert_shared_feed_forward_length", e.shared_width, 0);
}

void gguf_qwen3_next_config(Config& io, Spec& s) {
  delta_shape(io, s);
  shared_expert(io, s);
  gguf_refuse_unknown(io);
}

// llama.cpp's converter writes neighbouring heads for different key heads. The rotated pairs are
// divided among three axes of images; in texts, all axes have the same position.
void qwen3_5_shape(Config& io, Spec& s) {
  delta_shape(io, s);
  DeltaSpec& d = s.decoder->delta;
  d.tiled = d.heads != d.key_heads && d.key_heads > 1;
  io.value("rope.dimension_sections");
  if (io.reading()) return;
  const auto pairs = static_cast<int64_t>(static_cast<float>(gguf_head_width(s)) *
                                          s.decoder->position.rotary.share / 2);
  const int64_t third = (pairs + 2) / 3;
  io.write("rope.dimension_sections",
           {third, std::min(third, pairs - third), std::max<int64_t>(0, pairs - 2 * third), 0});
}

void gguf_qwen3_5_config(Config& io, Spec& s) {
  qwen3_5_shape(io, s);
  gguf_refuse_unknown(io);
}

void gguf_qwen3_5_moe_config(Config& io, Spec& s) {
  qwen3_5_shape(io, s);
  shared_expert(io, s);
  gguf_refuse_unknown(io);
}

const Names delta_names = {
    {"output_norm.weight", "decoder.norm.final.weight", Stored::one_plus},
    {"blk.{i}.{attn,post_attention}_norm.weight", "decoder.{i}.norm.{attention,ffn}.input.weight",
     Stored::one_plus},
    {"blk.{i}.attn_{q,k}_norm.weight", "decoder.{i}.attention.{query,key}_norm.weight",
     Stored::one_plus},
    {"blk.{i}.attn_q.weight", "decoder.{i}.attention.{query+gate}.weight", Stored::by_query_head},
    {"blk.{i}.attn_qkv.weight", "decoder.{i}.delta.{query+key+value}.weight"},
    {"blk.{i}.attn_gate.weight", "decoder.{i}.delta.gate.weight"},
    {"blk.{i}.ssm_conv1d.weight",
     "decoder.{i}.delta.{query_convolution+key_convolution+value_convolution}"},
    {"blk.{i}.ssm_dt.bias", "decoder.{i}.delta.decay.bias"},
    {"blk.{i}.ssm_a", "decoder.{i}.delta.rate", Stored::minus_exp},
    {"blk.{i}.ssm_norm.weight", "decoder.{i}.delta.norm.weight"},
    {"blk.{i}.ssm_out.weight", "decoder.{i}.delta.output.weight"},
    {"blk.{i}.ffn_{gate,up,down}_shexp.weight", "decoder.{i}.ffn.shared.{gate,up,down}.weight"},
    {"blk.{i}.ffn_gate_inp_shexp.weight", "decoder.{i}.ffn.shared_gate.weight", Stored::flattened}};
const Names gates = {{"blk.{i}.ssm_{beta,alpha}.weight", "decoder.{i}.delta.{beta,decay}.weight"}};
const Names joint_gates = {
    {"blk.{i}.ssm_ba.weight", "decoder.{i}.delta.{beta+decay}.weight", Stored::by_delta_head}};

Family architecture(const char* name, void (*config)(Config& io, Spec& spec), const Names& names) {
  Family family = gguf_architecture(name, config, names + delta_names);
  family.predicts_further = true;
  return family;
}

}  // namespace

const Family gguf_qwen3_next = architecture("qwen3next", gguf_qwen3_next_config, joint_gates);
const Family gguf_qwen3_5 = architecture("qwen35", gguf_qwen3_5_config, gates);
const Family gguf_qwen3_5_moe = architecture("qwen35moe", gguf_qwen3_5_moe_config, gates);

}  // namespace fovea::model
