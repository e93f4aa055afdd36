#include "fovea/model/spec.h"

#include <algorithm>

#include "base/fields.h"
#include "base/float_mode.h"
#include "spec/mixers.h"

namespace fovea::model {
namespace {

void complete_windows(const std::string& name, StackSpec& s) {
  auto& windows = s.attention.windows;
  const auto layers = static_cast<size_t>(s.layers);
  check(windows.size() <= 1 || windows.size() == layers,
        "spec: {}.attention.windows has {} numbers; expected 1, or {}, one per layer", name,
        windows.size(), layers);
  if (windows.size() == 1) windows.assign(layers, windows[0]);
  if (std::all_of(windows.begin(), windows.end(), [](int64_t w) { return w == 0; }))
    windows.clear();
  check(s.attention.global == 0 || !windows.empty(),
        "spec: {}.attention.global is {} without windows; expected 0, or set windows", name,
        s.attention.global);
}

// The number of shared experts follows from their total width, if it is a multiple of an expert's,
// so that equal models have equal Specs.
void complete_shared(ExpertsSpec& e) {
  if (e.shared == 0) {
    e.shared_width = 0;
    e.shared_gate = false;
    return;
  }
  if (e.shared_width == 0) e.shared_width = e.shared * e.width;
  e.shared = e.shared_width % e.width == 0 ? e.shared_width / e.width : 1;
}

void complete_groups(const std::string& name, ExpertsSpec& e) {
  check(e.count % e.groups == 0,
        "spec: {}.ffn.experts.groups {} does not divide count {}; expected a divisor", name,
        e.groups, e.count);
  check(e.groups_chosen <= e.groups,
        "spec: {}.ffn.experts.groups_chosen is {}; expected at most {}, their number", name,
        e.groups_chosen, e.groups);
  if (e.groups_chosen == e.groups) e.groups = e.groups_chosen = 1;
  const int64_t size = e.count / e.groups, eligible = e.groups_chosen * size;
  check(e.groups == 1 || e.chosen <= eligible,
        "spec: {}.ffn.experts.chosen is {}; expected at most {}, the experts of the chosen groups",
        name, e.chosen, eligible);
  check(e.groups == 1 || size > 1 || !e.selection_bias,
        "spec: {}.ffn.experts.groups is {} with selection_bias; expected groups of at least 2",
        name, e.groups);
}

// Each choice of a sparse mixer has a softmax of its own.
void complete_mixer(const std::string& name, ExpertsSpec& e) {
  if (e.score != ExpertScore::sparse_mixer) {
    e.tolerance = ExpertsSpec().tolerance;
    return;
  }
  e.normalise = true;  // it has no effect
  check(
      !e.selection_bias && e.groups == 1,
      "spec: {}.ffn.experts.score is sparse_mixer with selection_bias or groups; expected neither",
      name);
}

// What the layers of experts do not have, and what only gated ones have.
void check_inner(const std::string& name, FeedForwardSpec& f) {
  if (!f.gated) f.gate_limit = f.up_offset = 0;  // they have no effect
  check(!f.xielu || (!f.gated && f.experts.count == 0),
        "spec: {}.ffn.xielu is true with gated or experts; expected false", name);
  check(!f.inner_norm || f.experts.count == 0,
        "spec: {}.ffn.inner_norm is true with experts; expected false", name);
}

void complete_experts(const std::string& name, FeedForwardSpec& f, int64_t layers) {
  ExpertsSpec& e = f.experts;
  check_inner(name, f);
  if (f.xielu) f.activation = FeedForwardSpec().activation;  // it has no effect
  if (e.count == 0) {
    e = ExpertsSpec();  // the other fields have no effect
    return;
  }
  if (e.width == 0) e.width = f.width;
  complete_shared(e);
  complete_groups(name, e);
  complete_mixer(name, e);
  check(e.chosen <= e.count, "spec: {}.ffn.experts.chosen is {}; expected at most {}, their number",
        name, e.chosen, e.count);
  std::sort(e.dense_layers.begin(), e.dense_layers.end());
  for (const int64_t layer : e.dense_layers) {
    check(layer < layers,
          "spec: {}.ffn.experts.dense_layers contains layer {}; expected at most {}", name, layer,
          layers - 1);
  }
}

// Layers with the same weights must be alike in everything else too.
void complete_layer_groups(const std::string& name, StackSpec& s) {
  if (s.layer_groups == s.layers) s.layer_groups = 0;
  if (s.layer_groups == 0) return;
  check(s.layer_groups <= s.layers && s.layers % s.layer_groups == 0,
        "spec: {}.layer_groups is {}; expected 0 or a divisor of layers, {}", name, s.layer_groups,
        s.layers);
  check(s.mixers.empty() && s.attention.windows.empty() && s.ffn.experts.dense_layers.empty() &&
            s.first_norm,
        "spec: {}.layer_groups is {} with layers that differ by mixers, windows, dense_layers or "
        "first_norm; expected 0",
        name, s.layer_groups);
  check(s.position.rotary.unrotated.empty() && !s.position.bias_by_layer,
        "spec: {}.layer_groups is {} with position.rotary.unrotated or bias_by_layer; expected 0",
        name, s.layer_groups);
}

// Returns the rotary part with its defaults, after checking it.
RotarySpec complete_rotary(const std::string& name, const Spec& whole, const StackSpec& s) {
  RotarySpec r = s.position.rotary;
  const bool latent = s.latent.width > 0;
  // A stack without plain attention layers rotates the shared keys of latent attention only.
  const bool only_latent =
      latent && std::find(s.mixers.begin(), s.mixers.end(), MixerKind::attention) == s.mixers.end();
  const int64_t turned =
      only_latent ? s.latent.rotary
                  : static_cast<int64_t>(static_cast<float>(s.attention.head_width) * r.share);
  check(turned >= 2 && turned % 2 == 0,
        "spec: {}.position.rotary rotates {} of {} numbers of a head; expected an even number",
        name, turned, s.attention.head_width);
  check(!latent || r.scaling != RotaryScaling::longrope || turned == s.latent.rotary,
        "spec: {}.latent.rotary is {}; expected {}, as in the other layers, for longrope", name,
        s.latent.rotary, turned);
  for (const auto* factors : {&r.short_factors, &r.long_factors}) {
    const bool wanted = r.scaling == RotaryScaling::longrope;
    check(static_cast<int64_t>(factors->size()) == (wanted ? turned / 2 : 0),
          "spec: {}.position.rotary has {} factors; expected {}", name, factors->size(),
          wanted ? turned / 2 : 0);
  }
  check(r.scaling != RotaryScaling::llama3 || r.high_frequency > r.low_frequency,
        "spec: {}.position.rotary.high_frequency is {}; expected more than {}, low_frequency", name,
        r.high_frequency, r.low_frequency);
  check(r.scaling != RotaryScaling::dynamic || turned > 2,
        "spec: {}.position.rotary rotates {} numbers of a head; expected at least 4 for dynamic",
        name, turned);
  check(r.scaling != RotaryScaling::dynamic || r.factor >= 1,
        "spec: {}.position.rotary.factor is {}; expected at least 1 for dynamic", name, r.factor);
  check(r.scaling != RotaryScaling::longrope || r.attention_factor > 0 || r.factor <= 1 ||
            r.original_context != 1,
        "spec: {}.position.rotary.original_context is 1; expected more, or an attention_factor",
        name);
  check(r.scaling != RotaryScaling::yarn || r.theta > 1,
        "spec: {}.position.rotary.theta is {}; expected more than 1 for yarn", name, r.theta);
  if (r.scaling != RotaryScaling::yarn) r.whole_pairs = true;  // it has no effect
  if (r.original_context == 0 && (r.scaling != RotaryScaling::none || r.query_growth > 0))
    r.original_context = whole.context;
  check(r.query_growth == 0 || (r.share == 1 && s.attention.windows.empty() && !latent &&
                                r.unrotated.empty() && s.attention.norm == QueryKeyNorm::none),
        "spec: {}.position.rotary.query_growth is {}; expected 0, or share 1 and neither windows, "
        "latent attention, unrotated layers nor norms of queries",
        name, r.query_growth);
  std::sort(r.unrotated.begin(), r.unrotated.end());
  for (const int64_t layer : r.unrotated)
    check(layer < s.layers,
          "spec: {}.position.rotary.unrotated contains layer {}; expected at most {}", name, layer,
          s.layers - 1);
  return r;
}

// A table of sines and cosines is that of all elements of a head, without scaling.
void check_stored_rotary(const std::string& name, const StackSpec& s) {
  const RotarySpec& r = s.position.rotary;
  check(r.theta == 10000 && r.local_theta == 0 && r.share == 1 &&
            r.scaling == RotaryScaling::none && s.latent.width == 0,
        "spec: {}.position.stored is true with rotary positions of theta {}; expected theta 10000, "
        "share 1, and neither local_theta, scaling nor latent attention",
        name, r.theta);
}

void check_disentangled(const std::string& name, const Spec& whole, const StackSpec& s) {
  const DisentangledSpec& d = s.position.disentangled;
  const AttentionSpec& a = s.attention;
  check(name == "encoder" && whole.input.kind == InputKind::tokens,
        "spec: {}.position.bias is disentangled; expected another one, or an encoder of tokens",
        name);
  check(d.content_to_position || d.position_to_content,
        "spec: {}.position.disentangled has neither content_to_position nor position_to_content; "
        "expected one of them",
        name);
  check(s.position.buckets % 2 == 0,
        "spec: {}.position.buckets is {} with disentangled; expected an even number", name,
        s.position.buckets);
  check(a.kv_heads == a.heads && a.norm == QueryKeyNorm::none && s.mixers.empty(),
        "spec: {}.attention has kv_heads {}, norms of queries or keys, or other mixers, with "
        "disentangled; expected {} and neither",
        name, a.kv_heads, a.heads);
}

// Checks the fields of this kind of positions, and resets those of other kinds, so that equal
// models have equal Specs.
void complete_position(const std::string& name, const Spec& whole, StackSpec& s) {
  PositionSpec& p = s.position;
  PositionSpec plain;
  plain.kind = p.kind;
  plain.bias = p.bias;
  if (p.bias == DistanceBias::relative) {
    plain.buckets = p.buckets, plain.distance = p.distance, plain.bias_by_layer = p.bias_by_layer;
    check(p.distance > p.buckets / 2, "spec: {}.position.distance is {}; expected more than {}",
          name, p.distance, p.buckets / 2);
  }
  if (p.bias == DistanceBias::disentangled) {
    check_disentangled(name, whole, s);
    plain.buckets = p.buckets, plain.distance = p.distance, plain.disentangled = p.disentangled;
    check(p.distance >= p.buckets / 2, "spec: {}.position.distance is {}; expected at least {}",
          name, p.distance, p.buckets / 2);
  }
  switch (p.kind) {
    case PositionKind::none: break;
    case PositionKind::learned: plain.offset = p.offset; break;
    case PositionKind::sinusoidal:
      plain.offset = p.offset, plain.waves = p.waves, plain.stored = p.stored;
      check(whole.width % 2 == 0, "spec: width is {}; expected an even number for sinusoids",
            whole.width);
      break;
    case PositionKind::rotary:
      plain.rotary = complete_rotary(name, whole, s);
      plain.stored = p.stored;
      if (!p.stored) break;
      check_stored_rotary(name, s);
      plain.waves = Waves::halves;  // the sines, followed by the cosines
      break;
  }
  p = plain;
}

void complete_latent(const std::string& name, StackSpec& s) {
  LatentSpec& l = s.latent;
  if (l.width == 0) l.width = 4 * s.attention.head_width;
  if (l.epsilon == 0) l.epsilon = s.norm.epsilon;
  check(s.norm.kind != NormKind::dyt || l.epsilon == s.norm.epsilon,
        "spec: {}.latent.epsilon is {} with dyt; expected 0", name, l.epsilon);
  if (s.position.kind != PositionKind::rotary)
    l.rotary = 0;
  else if (l.rotary == 0)
    l.rotary = (s.attention.head_width / 2 + 1) / 2 * 2;
  check(l.rotary % 2 == 0, "spec: {}.latent.rotary is {}; expected an even number", name, l.rotary);
}

bool has_mixer(const StackSpec& s, MixerKind kind) {
  return std::find(s.mixers.begin(), s.mixers.end(), kind) != s.mixers.end();
}

void complete_delta(const std::string& name, StackSpec& s) {
  DeltaSpec& d = s.delta;
  if (d.key_heads == 0) d.key_heads = d.heads;
  if (d.value_width == 0) d.value_width = d.key_width;
  if (d.key_heads == d.heads || d.key_heads == 1) d.tiled = false;  // it has no effect then
  if (d.epsilon == 0) d.epsilon = s.norm.epsilon;
  check(d.heads % d.key_heads == 0,
        "spec: {}.delta.key_heads {} does not divide delta.heads {}; expected a divisor", name,
        d.key_heads, d.heads);
}

void complete_state_space(const std::string& name, const Spec& whole, StateSpaceSpec& m) {
  if (m.heads == 0) m.heads = std::max<int64_t>(1, 2 * whole.width / m.head_width);
  check(m.heads % m.groups == 0,
        "spec: {}.state_space.groups {} does not divide state_space.heads {}; expected a divisor",
        name, m.groups, m.heads);
  if (!m.norm) m.norm_first = false, m.norm_groups = 1;  // they have no effect
  check(m.heads * m.head_width % m.norm_groups == 0,
        "spec: {}.state_space.norm_groups {} does not divide {} columns; expected a divisor", name,
        m.norm_groups, m.heads * m.head_width);
  check(m.most_step == 0 || m.most_step > m.least_step,
        "spec: {}.state_space.most_step is {}; expected 0 or more than least_step, {}", name,
        m.most_step, m.least_step);
}

// Repeats the mixers over the layers; if all layers have attention, the list is empty.
void complete_mixers(const std::string& name, const Spec& whole, StackSpec& s) {
  auto& mixers = s.mixers;
  const auto layers = static_cast<size_t>(s.layers);
  check(mixers.size() <= layers,
        "spec: {}.mixers has {} elements; expected at most {}, one per layer", name, mixers.size(),
        layers);
  const bool recurrent =
      std::any_of(mixers.begin(), mixers.end(), [](MixerKind each) { return is_recurrent(each); });
  const bool latent = has_mixer(s, MixerKind::latent);
  check(!recurrent || name == "decoder",
        "spec: {}.mixers has a recurrent layer, which is causal; expected attention", name);
  if (!has_mixer(s, MixerKind::rnn) && !has_mixer(s, MixerKind::gru) &&
      !has_mixer(s, MixerKind::lstm))
    s.recurrence = {};
  else if (s.recurrence.width == 0)
    s.recurrence.width = whole.width;
  if (latent)
    complete_latent(name, s);
  else
    s.latent = {};
  if (has_mixer(s, MixerKind::gated_delta))
    complete_delta(name, s);
  else
    s.delta = {};
  if (!has_mixer(s, MixerKind::convolution))
    s.convolution = {};
  else if (s.convolution.width == 0)
    s.convolution.width = whole.width;
  if (has_mixer(s, MixerKind::state_space))
    complete_state_space(name, whole, s.state_space);
  else
    s.state_space = {};
  check(!latent || !s.attention.sinks,
        "spec: {}.attention.sinks is true with latent attention; expected false", name);
  check(!latent || s.attention.value_residual == 0,
        "spec: {}.attention.value_residual is {} with latent attention; expected 0", name,
        s.attention.value_residual);
  if (!recurrent && !latent) return mixers.clear();
  const size_t given = mixers.size();
  for (size_t i = given; i < layers; ++i) mixers.push_back(mixers[i % given]);
}

// Sets what gated_delta layers take from attention, which may be reset then.
void begin_delta(const Spec& whole, StackSpec& s) {
  if (s.delta.heads == 0) s.delta.heads = s.attention.heads;
  if (s.delta.key_width == 0) s.delta.key_width = s.attention.head_width;
  if (s.delta.key_width == 0 && s.attention.heads > 0)
    s.delta.key_width = whole.width / s.attention.heads;
}

// Resets what has no effect if all layers are recurrent, so that equal models have equal Specs.
void reset_attention(const Spec& whole, StackSpec& s) {
  const bool crosses = whole.encoder && whole.decoder;
  const bool attends =
      s.mixers.empty() || !std::all_of(s.mixers.begin(), s.mixers.end(),
                                       [](MixerKind each) { return is_recurrent(each); });
  if (attends || crosses) return;
  s.attention = {.heads = 1, .head_width = 1};
  if (s.position.kind == PositionKind::rotary) s.position.kind = PositionKind::none;
  s.position.bias = DistanceBias::none;
}

void check_products_and_norms(const std::string& name, StackSpec& s) {
  const bool mixed = std::any_of(s.mixers.begin(), s.mixers.end(),
                                 [](MixerKind each) { return is_recurrent(each); });
  const bool pre_norm = s.placement.input && !s.placement.output && !s.placement.sum;
  if (!mixed || pre_norm) s.recurrent_pre_norm = false;    // it has no effect
  if (!s.embedding_norm) s.norm_before_positions = false;  // it has no effect
  check(!s.norm_before_positions || (s.norm.kind != NormKind::dyt && !s.norm.epsilon_outside),
        "spec: {}.norm_before_positions is true with dyt or epsilon_outside; expected false", name);
  check(!s.norm.epsilon_outside || s.norm.kind == NormKind::layer,
        "spec: {}.norm.epsilon_outside is for LayerNorm; expected kind layer", name);
  check(!s.ternary || (s.mixers.empty() && s.ffn.experts.count == 0),
        "spec: {}.ternary is true with experts or other mixers than attention; expected false",
        name);
}

void complete(const std::string& name, const Spec& whole, StackSpec& s) {
  if (has_mixer(s, MixerKind::gated_delta)) begin_delta(whole, s);
  reset_attention(whole, s);
  AttentionSpec& a = s.attention;
  if (a.kv_heads == 0) a.kv_heads = a.heads;
  if (a.head_width == 0) {
    check(whole.width % a.heads == 0,
          "spec: heads {} does not divide width {}; expected a divisor, or `head_width`", a.heads,
          whole.width);
    a.head_width = whole.width / a.heads;
  }
  check(a.head_width <= 256, "spec: heads are {} wide; expected at most 256", a.head_width);
  if (a.value_width == 0) a.value_width = a.head_width;
  check(a.heads % a.kv_heads == 0, "spec: kv_heads {} does not divide heads {}; expected a divisor",
        a.kv_heads, a.heads);
  if (!a.bias) a.key_bias = true;  // it has no effect then
  check(!a.sinks || s.position.bias != DistanceBias::disentangled,
        "spec: {}.attention.sinks is true with disentangled; expected false", name);
  if (a.norm == QueryKeyNorm::none || s.position.kind != PositionKind::rotary)
    a.norm_rotated = false;
  check(a.norm != QueryKeyNorm::all || !a.norm_rotated,
        "spec: {}.attention.norm_rotated is true with norm all; expected false", name);
  check(a.norm != QueryKeyNorm::each || (s.norm.kind != NormKind::dyt && !s.norm.unit_offset),
        "spec: {}.attention.norm is each with dyt or unit_offset; expected another norm", name);
  if (s.ffn.width == 0) s.ffn.width = 4 * whole.width;
  complete_mixers(name, whole, s);
  complete_windows(name, s);
  complete_experts(name, s.ffn, s.layers);
  complete_layer_groups(name, s);
  complete_position(name, whole, s);
  check(!s.parallel || (s.placement.input && !s.placement.output && !s.placement.sum),
        "spec: {}.parallel with placement input {}, output {}, sum {}; expected true, false, false",
        name, s.placement.input, s.placement.output, s.placement.sum);
  check(!s.parallel || (s.residual && s.ffn.present),
        "spec: parallel sublayers need residual and ffn.present; expected both true");
  check(!s.one_norm || s.parallel, "spec: {}.one_norm is true without parallel; expected false",
        name);
  check(s.sublayer_scale == 1 || !whole.encoder || !whole.decoder,
        "spec: {}.sublayer_scale is {} with an encoder and a decoder; expected 1", name,
        s.sublayer_scale);
  if (!s.ffn.present) s.ffn = {.present = false};  // the other fields have no effect
  if (!s.ffn.bias) s.ffn.inner_bias = true;        // it has no effect then
  check_products_and_norms(name, s);
  check(s.residual || !s.zero_outputs,
        "spec: {}.zero_outputs without residual is a model whose output is 0; expected residual",
        name);
  check(s.init_scale == 0 || !s.zero_outputs,
        "spec: {}.init_scale is {} with zero_outputs; expected one of them", name, s.init_scale);
  check(s.residual || s.residual_scale == 1,
        "spec: {}.residual_scale is {} without residual; expected 1", name, s.residual_scale);
  check(s.norm.gain || (s.norm.kind != NormKind::dyt && !s.norm.unit_offset),
        "spec: {}.norm.gain is false with dyt or unit_offset; expected true", name);
  // It has no effect: RMSNorm has no bias, nor has a norm without gains.
  if (s.norm.kind == NormKind::rms || !s.norm.gain) s.norm.bias = true;
  if (s.norm.kind == NormKind::dyt)
    s.norm.epsilon = NormSpec().epsilon;  // nor has this one: DyT does not divide
  else
    s.norm.alpha = NormSpec().alpha;
}

void complete(HeadSpec& h) {
  const bool words = h.kind == HeadKind::language_model, whole = h.kind == HeadKind::sequence;
  if (!words) h.tied = false, h.scale = 1;
  check(h.scale == 1 || !h.bias, "spec: head.scale is {} with bias; expected 1", h.scale);
  if (words || h.kind == HeadKind::pooled) {
    check(h.labels == 0, "spec: head.labels is {}; expected 0 for this kind of head", h.labels);
  } else {
    check(h.labels > 0, "spec: head.labels is 0; expected at least 1");
  }
  if (!whole && h.kind != HeadKind::pooled) h.pooling = Pooling::first;
  if (h.kind != HeadKind::pooled) h.projection = 0;
  if (h.kind == HeadKind::pooled && h.projection == 0) h.bias = false;  // it has no effect then
  if (!h.transform) {
    h.activation = HeadSpec().activation;
    h.transform_bias = true;
    h.transform_norm = false;
  }
  if (!h.transform || !words) h.transform_width = 0;
  // The layer of a single token is the same before and after the pooling.
  if (!h.transform || !whole || h.pooling != Pooling::mean) h.pool_transformed = false;
}

void complete_transform_width(const Spec& s, HeadSpec& h) {
  const int64_t width = s.embedding_width > 0 ? s.embedding_width : s.width;
  if (h.transform_width == width) h.transform_width = 0;
  check(h.transform_width == 0 || !h.tied,
        "spec: head.transform_width is {} with tied; expected {}, the width of the embeddings",
        h.transform_width, width);
}

// Checks the heads of images, whose outputs or parameters differ from those of texts.
void check_image_head(const Spec& s) {
  const HeadSpec& h = s.head;
  check(!h.distilled || (h.kind == HeadKind::sequence && h.pooling == Pooling::first &&
                         !h.transform && s.input.class_tokens == 2),
        "spec: head.distilled needs a head for a sequence without transform, pooling first and 2 "
        "class tokens; expected these, or false");
  const bool special = h.pooling == Pooling::first_and_mean || h.pooling == Pooling::attention;
  if (!special) return;
  const bool image = s.input.kind == InputKind::image && !s.decoder;
  check(image, "spec: head.pooling is for an encoder of images; expected first, mean or last");
  check(h.pooling == Pooling::attention || (!h.transform && s.input.class_tokens > 0),
        "spec: head.pooling is first_and_mean with transform or without a class token; expected "
        "another pooling");
}

void complete_embedding(Spec& s) {
  if (s.embedding_width == s.width) s.embedding_width = 0;
  if (s.embedding_width == 0) return;
  check(s.encoder && !s.decoder && s.input.kind == InputKind::tokens,
        "spec: embedding_width is {}; expected 0, or an encoder of tokens without a decoder",
        s.embedding_width);
  check(s.encoder->position.bias != DistanceBias::disentangled,
        "spec: embedding_width is {} with disentangled; expected 0", s.embedding_width);
  const PositionKind position = s.encoder->position.kind;
  check(position != PositionKind::sinusoidal || s.embedding_width % 2 == 0,
        "spec: embedding_width is {}; expected an even number for sinusoids", s.embedding_width);
  check(s.head.kind != HeadKind::language_model || s.head.transform,
        "spec: head.transform is false with embedding_width {}; expected true", s.embedding_width);
}

}  // namespace

Spec validated(Spec s) {
  const FloatMode mode;
  if (const auto wrong = find_out_of_range(s))
    check(false, "spec: {} is {}; expected {}", wrong->field.path, wrong->value, wrong->expected);
  check(s.encoder || s.decoder, "spec: no stack; expected an encoder, a decoder or both");
  if (s.encoder) complete("encoder", s, *s.encoder);
  if (s.decoder) complete("decoder", s, *s.decoder);
  complete_embedding(s);
  check(!s.encoder || !s.decoder || !s.decoder->parallel,
        "spec: decoder.parallel cannot be combined with an encoder; expected false");
  complete(s.head);
  complete_transform_width(s, s.head);
  if (s.source_vocabulary == s.vocabulary) s.source_vocabulary = 0;
  const bool tokens = s.input.kind == InputKind::tokens;
  check(s.encoder || tokens,
        "spec: input.kind is image or audio without an encoder; expected tokens, or an encoder");
  check(s.source_vocabulary == 0 || (s.encoder && s.decoder && tokens),
        "spec: source_vocabulary is {}; expected 0, or an encoder and a decoder",
        s.source_vocabulary);
  check_image_head(s);
  if (s.input.kind != InputKind::image) {
    const InputSpec plain;
    s.input = {s.input.kind,    plain.size, plain.patch,  plain.channels, plain.class_tokens,
               plain.registers, plain.bias, s.input.bins, s.input.frames};
  } else {
    check(s.input.registers == 0 || s.input.class_tokens > 0,
          "spec: input.registers is {} without a class token; expected 0, or class_tokens",
          s.input.registers);
    check(s.input.registers == 0 || s.encoder->position.kind != PositionKind::rotary,
          "spec: input.registers is {} with rotary positions; expected 0", s.input.registers);
    check(s.input.size % s.input.patch == 0,
          "spec: input.patch {} does not divide input.size {}; expected a divisor", s.input.patch,
          s.input.size);
    const int64_t side = s.input.size / s.input.patch;
    if (!s.decoder) s.context = side * side + s.input.class_tokens;
  }
  if (s.input.kind != InputKind::audio) s.input.bins = 80, s.input.frames = 1500;
  const bool reads_text = s.decoder || tokens;
  check(s.vocabulary > 0 || !reads_text, "spec: vocabulary is 0; expected at least 1");
  check(s.token_types == 0 || reads_text, "spec: token_types is {} without tokens; expected 0",
        s.token_types);
  check(s.head.kind != HeadKind::language_model || reads_text,
        "spec: head.kind is language_model without tokens; expected another kind");
  return s;
}

}  // namespace fovea::model
