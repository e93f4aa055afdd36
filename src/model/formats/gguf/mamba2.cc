// GGUF's architectures with the state spaces of Mamba-2.

#include "base/error.h"
#include "families/shared.h"
#include "formats/gguf/architectures.h"
#include "formats/gguf/shared.h"

namespace fovea::model {
namespace {

constexpr const char* kInner = "ssm.inner_size";

void state_space(Config& io, Spec& s) {
  StateSpaceSpec& m = s.decoder->state_space;
  io("ssm.conv_kernel", m.convolution, 4);
  io("ssm.time_step_rank", m.heads);
  io("ssm.group_count", m.groups, 1);
  io("ssm.state_size", m.state_width);
  int64_t inner = m.heads * m.head_width;
  io(kInner, inner);
  if (m.heads < 1 || inner % m.heads != 0)
    fail(ErrorKind::BadFile, "{}: {} is {}; expected a multiple of ssm.time_step_rank, {}",
         io.name(), kInner, inner, m.heads);
  m.head_width = inner / m.heads;
  if (!io.reading() && (!m.norm || m.norm_first || m.norm_groups != m.groups ||
                        !m.convolution_bias || m.least_step > 0 || m.most_step > 0))
    fail(ErrorKind::Unsupported,
         "state_space has other norms, no bias of its convolution, or limits of its steps; "
         "expected those of Mamba-2");
  m.norm_groups = m.groups;
}

void gguf_mamba2_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  io("vocab_size", s.vocabulary);
  io("context_length", s.context);
  io("embedding_length", s.width);
  io("block_count", d.layers);
  for (const char* unused : {"feed_forward_length", "attention.head_count"}) io.write(unused, 0);
  io("attention.layer_norm_rms_epsilon", d.norm.epsilon, 1e-5f);
  gguf_tied(io, s);
  state_space(io, s);
  if (!io.reading()) return;
  d.mixers = {MixerKind::state_space};
  d.norm.kind = NormKind::rms;
  d.position.kind = PositionKind::none;
  d.ffn.present = false;
  d.attention.heads = 1;
  gguf_refuse_unknown(io);
}

// Granite 4 and Bamba. Whether positions are rotary is in a key of another name.
void gguf_granite_hybrid_config(Config& io, Spec& s) {
  StackSpec& d = *s.decoder;
  ExpertsSpec& e = d.ffn.experts;
  bool rotary = d.position.kind == PositionKind::rotary;
  gguf_llama_shape(io, s, MixerKind::state_space);
  io("rope.scaling.finetuned", rotary, true);
  if (!rotary) d.position = {.kind = PositionKind::none};
  gguf_granite_factors(io, s);
  state_space(io, s);
  if (d.state_space.heads * d.state_space.head_width != 2 * s.width)
    fail(ErrorKind::Unsupported, "{}: {} is {}; expected {}, as in llama.cpp",
         io.reading() ? io.name() : "granitehybrid", kInner,
         d.state_space.heads * d.state_space.head_width, 2 * s.width);
  gguf_experts(io, s);
  if (io.reading() || e.shared > 0) io("expert_shared_feed_forward_length", e.shared_width, 0);
  if (io.reading()) e.shared = e.shared_width > 0 ? 1 : 0;
  gguf_refuse_unknown(io);
}

const Names mamba2_tensors = {
    {"blk.{i}.ssm_in.weight", "decoder.{i}.state_space.{gate+value+key+query+step}.weight"},
    {"blk.{i}.ssm_conv1d.weight",
     "decoder.{i}.state_space.{value_convolution+key_convolution+query_convolution}"},
    {"blk.{i}.ssm_conv1d.bias",
     "decoder.{i}.state_space."
     "{value_convolution_bias+key_convolution_bias+query_convolution_bias}"},
    {"blk.{i}.ssm_dt.bias", "decoder.{i}.state_space.step.bias"},
    {"blk.{i}.ssm_a", "decoder.{i}.state_space.rate", Stored::minus_exp_column},
    {"blk.{i}.ssm_d", "decoder.{i}.state_space.skip", Stored::column},
    {"blk.{i}.ssm_norm.weight", "decoder.{i}.state_space.norm.weight", Stored::norm_groups},
    {"blk.{i}.ssm_out.weight", "decoder.{i}.state_space.output.weight"},
    {"blk.{i}.ffn_{gate,up,down}_shexp.weight", "decoder.{i}.ffn.shared.{gate,up,down}.weight"}};

}  // namespace

const Family gguf_mamba2 = gguf_architecture("mamba2", gguf_mamba2_config, mamba2_tensors);
const Family gguf_granite_hybrid = gguf_architecture("granitehybrid", gguf_granite_hybrid_config,
                                                     gguf_rotary_pairs() + mamba2_tensors);

}  // namespace fovea::model
