#include <algorithm>

#include "base/error.h"
#include "fovea/core/excerpt.h"
#include "fovea/model/spec.h"

namespace fovea::model {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // a limit above any axis of a real model
constexpr double kAnyFactor = 1e9;           // limit of thetas, factors, scales and caps

const std::vector<std::string>& activations() {
  static const std::vector<std::string> names = {"relu", "gelu",       "gelu_tanh",    "silu",
                                                 "tanh", "quick_gelu", "relu_squared", "sigmoid"};
  return names;
}

Field field(const std::string& path, const std::string& name, const std::string& help) {
  return {.name = name, .help = help, .path = path};
}

// A group of fields: its path in spec.json, and the prefix of its fields' names.
struct FieldScope {
  std::string path, prefix;
  std::string at(const char* part) const { return path + "." + part; }
  Field field(const char* part, const char* name, const char* help) const {
    return model::field(at(part), prefix + name, help);
  }
};

void visit(RotarySpec& r, OptionVisitor& v, const FieldScope& p) {
  v.number(p.field("theta", "rope_theta", "base of the rotary frequencies (RoPE theta)"), r.theta,
           1, kAnyFactor);
  v.number(
      p.field("local_theta", "local_theta", "RoPE base of layers with a window; 0 = same as theta"),
      r.local_theta, 0, kAnyFactor);
  v.number(p.field("share", "rotary_share", "fraction of a head's width that is rotated"), r.share,
           0, 1);
  v.boolean(p.field("neighbours", "rotary_neighbours", "rotate pairs of neighbouring elements"),
            r.neighbours);
  v.choice(p.field("scaling", "rope_scaling", "scaling for contexts longer than in training"),
           r.scaling, {"none", "linear", "dynamic", "llama3", "yarn", "longrope"});
  v.number(p.field("factor", "rope_factor", "new context / original context"), r.factor, 1e-3,
           kAnyFactor);
  v.integer(p.field("original_context", "original_context", "context before scaling; 0 = context"),
            r.original_context, 0, kMost);
  v.number(p.field("low_frequency", "low_frequency", "lower bound of llama3 scaling, in turns"),
           r.low_frequency, 1e-3, kAnyFactor);
  v.number(p.field("high_frequency", "high_frequency", "upper bound of llama3 scaling, in turns"),
           r.high_frequency, 1e-3, kAnyFactor);
  v.number(p.field("fast", "yarn_fast", "upper bound of yarn scaling, in turns"), r.fast, 1e-3,
           kAnyFactor);
  v.number(p.field("slow", "yarn_slow", "lower bound of yarn scaling, in turns"), r.slow, 1e-3,
           kAnyFactor);
  v.boolean(p.field("whole_pairs", "yarn_whole_pairs", "yarn rounds its bounds to whole pairs"),
            r.whole_pairs);
  v.number(p.field("attention_factor", "rope_attention_factor",
                   "factor of cos and sin; 0 = from the scaling"),
           r.attention_factor, 0, kAnyFactor);
  v.numbers(
      p.field("short_factors", "short_factors", "longrope factors of short texts, one per pair"),
      r.short_factors, 1e-3, kAnyFactor);
  v.numbers(p.field("long_factors", "long_factors", "longrope factors of long texts, one per pair"),
            r.long_factors, 1e-3, kAnyFactor);
  v.number(p.field("query_growth", "query_growth",
                   "growth of queries with the logarithm of their position; 0 = none"),
           r.query_growth, 0, kAnyFactor);
  v.integers(p.field("unrotated", "unrotated_layers", "layers without rotary positions"),
             r.unrotated, 0, 4095);
}

void visit(PositionSpec& s, OptionVisitor& v, const FieldScope& p) {
  v.choice(p.field("kind", "position", "kind of positions"), s.kind,
           {"none", "learned", "sinusoidal", "rotary"});
  v.integer(p.field("offset", "position_offset", "row of the table for position 0"), s.offset, 0,
            1024);
  v.choice(p.field("waves", "waves", "order of the sinusoids"), s.waves,
           {"neighbours", "halves", "spread"});
  v.boolean(p.field("stored", "stored_waves", "the checkpoint stores the sinusoids"), s.stored);
  visit(s.rotary, v, {p.at("rotary"), p.prefix});
  v.choice(p.field("bias", "distance_bias", "position bias of the scores"), s.bias,
           {"none", "alibi", "relative", "disentangled"});
  v.integer(p.field("buckets", "position_buckets", "buckets of relative distances"), s.buckets, 4,
            65536);
  v.integer(p.field("distance", "position_distance", "distances of at least N share a bucket"),
            s.distance, 4, kMost);
  v.boolean(p.field("bias_by_layer", "distance_bias_by_layer",
                    "each layer has its own values of relative distances"),
            s.bias_by_layer);
  DisentangledSpec& d = s.disentangled;
  v.boolean(p.field("disentangled.content_to_position", "content_to_position",
                    "disentangled scores have products of queries and distances"),
            d.content_to_position);
  v.boolean(p.field("disentangled.position_to_content", "position_to_content",
                    "disentangled scores have products of keys and distances"),
            d.position_to_content);
  v.boolean(p.field("disentangled.shared", "shared_distances",
                    "the layers of queries and keys also read the vectors of distances"),
            d.shared);
  v.boolean(p.field("disentangled.norm", "distance_norm", "norm on the vectors of distances"),
            d.norm);
}

void visit(NormSpec& n, OptionVisitor& v, const FieldScope& p) {
  v.choice(p.field("kind", "norm", "kind of normalisation"), n.kind, {"layer", "rms", "dyt"});
  v.number(p.field("epsilon", "norm_epsilon", "added to the variance"), n.epsilon, 0, 1);
  v.boolean(p.field("bias", "norm_bias", "LayerNorm and DyT add a bias"), n.bias);
  v.boolean(p.field("gain", "norm_gain", "LayerNorm and RMSNorm have gains and biases"), n.gain);
  v.boolean(p.field("unit_offset", "norm_unit_offset", "the gain is 1 + weight"), n.unit_offset);
  v.boolean(p.field("epsilon_outside", "norm_epsilon_outside",
                    "epsilon is added to the deviation instead"),
            n.epsilon_outside);
  v.number(p.field("alpha", "norm_alpha", "initial alpha of DyT"), n.alpha, 1e-3, 1e3);
}

void visit(AttentionSpec& a, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("heads", "heads", "attention heads"), a.heads, 1, 4096);
  v.integer(p.field("kv_heads", "kv_heads", "key-value heads; 0 = heads"), a.kv_heads, 0, 4096);
  v.integer(p.field("head_width", "head_width", "width of one head; 0 = width / heads"),
            a.head_width, 0, 256);
  v.integer(p.field("value_width", "value_width", "width of a head's values; 0 = head width"),
            a.value_width, 0, 256);
  v.integers(
      p.field("windows", "window",
              "keys that a query sees in each direction: one number, or one per layer; 0 = all"),
      a.windows, 0, kMost);
  v.integer(
      p.field("global", "global_tokens", "first tokens that see and are seen by all, with windows"),
      a.global, 0, kMost);
  v.boolean(p.field("bias", "attention_bias", "biases of query, key and value"), a.bias);
  v.boolean(p.field("key_bias", "key_bias", "bias of the key, with attention biases"), a.key_bias);
  v.boolean(p.field("output_bias", "attention_output_bias", "bias of attention's output"),
            a.output_bias);
  v.choice(p.field("norm", "query_key_norm", "norm of queries and keys"), a.norm,
           {"none", "head", "all", "each"});
  v.boolean(p.field("norm_rotated", "query_key_norm_rotated",
                    "the norm of queries and keys follows their rotation"),
            a.norm_rotated);
  v.boolean(p.field("heads_norm", "heads_norm", "norm over the outputs of all heads"),
            a.heads_norm);
  v.number(p.field("scale", "attention_scale", "scale of the scores; 0 = 1 / sqrt(head width)"),
           a.scale, 0, kAnyFactor);
  v.number(p.field("softcap", "attention_softcap", "bound of the scores; 0 = none"), a.softcap, 0,
           kAnyFactor);
  v.boolean(p.field("gated", "attention_gated",
                    "the outputs of the heads are multiplied by the sigmoid of a gate"),
            a.gated);
  v.boolean(
      p.field("sinks", "attention_sinks",
              "each head has a learned score without a value that takes a share of the softmax"),
      a.sinks);
  v.number(p.field("value_residual", "value_residual",
                   "share of the first attention layer's values in those of the others; 0 = none"),
           a.value_residual, 0, 1);
}

const std::vector<std::string>& mixer_names() {
  static const std::vector<std::string> names = {
      "attention", "rnn", "gru", "lstm", "latent", "gated_delta", "convolution", "state_space"};
  return names;
}

void visit_mixers(std::vector<MixerKind>& mixers, OptionVisitor& v, const Field& field) {
  const auto& all = mixer_names();
  std::vector<std::string> names;
  for (const MixerKind mixer : mixers) names.push_back(all[static_cast<size_t>(mixer)]);
  v.texts(field, names);
  mixers.clear();
  for (const std::string& name : names) {
    const auto found = std::find(all.begin(), all.end(), name);
    check(found != all.end(), "{}: {}; expected one of {}", field.path, excerpt(name),
          fmt::join(all, ", "));
    mixers.push_back(static_cast<MixerKind>(found - all.begin()));
  }
}

void visit(RecurrenceSpec& r, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("width", "recurrence_width", "width of a recurrent state; 0 = the model's"),
            r.width, 0, kMost);
  v.boolean(p.field("bias", "recurrence_bias", "biases of recurrent layers"), r.bias);
}

void visit(LatentSpec& l, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("width", "latent_width",
                    "width of the latent of keys and values; 0 = 4 x head width"),
            l.width, 0, 65536);
  v.integer(
      p.field("query_width", "latent_query_width", "width of the latent of queries; 0 = none"),
      l.query_width, 0, 65536);
  v.integer(p.field("rotary", "latent_rotary",
                    "width of the rotated key of latent attention; 0 = head width / 2"),
            l.rotary, 0, 256);
  v.number(p.field("epsilon", "latent_epsilon", "of the norms of the latents; 0 = norm epsilon"),
           l.epsilon, 0, 1);
}

void visit(DeltaSpec& d, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("heads", "delta_heads", "heads of gated_delta layers; 0 = attention's"),
            d.heads, 0, 4096);
  v.integer(
      p.field("key_heads", "delta_key_heads", "heads of their queries and keys; 0 = delta heads"),
      d.key_heads, 0, 4096);
  v.boolean(p.field("tiled", "delta_tiled", "neighbouring heads read different key heads"),
            d.tiled);
  v.integer(
      p.field("key_width", "delta_key_width", "width of their queries and keys; 0 = head width"),
      d.key_width, 0, 1024);
  v.integer(p.field("value_width", "delta_value_width", "width of their values; 0 = key width"),
            d.value_width, 0, 1024);
  v.integer(p.field("convolution", "delta_convolution", "tokens that their convolution reads"),
            d.convolution, 1, 64);
  v.boolean(p.field("doubled", "delta_doubled", "their updates are up to twice as large"),
            d.doubled);
  v.number(p.field("epsilon", "delta_epsilon", "of the norm of their outputs; 0 = norm epsilon"),
           d.epsilon, 0, 1);
}

void visit(ConvolutionSpec& c, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("width", "convolution_width", "columns of convolution layers; 0 = the width"),
            c.width, 0, kMost);
  v.integer(p.field("tokens", "convolution_tokens", "tokens that convolution layers read"),
            c.tokens, 1, 64);
  v.boolean(p.field("bias", "convolution_bias", "biases of convolution layers"), c.bias);
}

void visit(StateSpaceSpec& m, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("heads", "state_heads",
                    "heads of state_space layers; 0 = 2 x width / their head width"),
            m.heads, 0, 4096);
  v.integer(p.field("head_width", "state_head_width", "width of a head of state_space layers"),
            m.head_width, 1, 1024);
  v.integer(p.field("groups", "state_groups", "pairs of B and C, each for equally many heads"),
            m.groups, 1, 4096);
  v.integer(p.field("state_width", "state_width", "width of B and C"), m.state_width, 1, 1024);
  v.integer(p.field("convolution", "state_convolution", "tokens that their convolution reads"),
            m.convolution, 1, 64);
  v.boolean(p.field("convolution_bias", "state_convolution_bias", "bias of their convolution"),
            m.convolution_bias);
  v.boolean(p.field("norm", "state_norm", "RMSNorm of their gated outputs"), m.norm);
  v.boolean(p.field("norm_first", "state_norm_first", "the norm precedes the gate"), m.norm_first);
  v.integer(p.field("norm_groups", "state_norm_groups", "equal parts, each with a norm"),
            m.norm_groups, 1, 4096);
  v.number(p.field("least_step", "state_least_step", "least step"), m.least_step, 0, kAnyFactor);
  v.number(p.field("most_step", "state_most_step", "largest step; 0 = no limit"), m.most_step, 0,
           kAnyFactor);
}

void visit(Placement& n, OptionVisitor& v, const FieldScope& p) {
  v.boolean(p.field("input", "pre_norm", "norm on a sublayer's input"), n.input);
  v.boolean(p.field("output", "output_norm", "norm on a sublayer's output"), n.output);
  v.boolean(p.field("sum", "post_norm", "norm on the sum after a sublayer"), n.sum);
}

void visit(ExpertsSpec& e, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("count", "experts", "experts of each layer; 0 = none"), e.count, 0, 4096);
  v.integer(p.field("chosen", "experts_chosen", "experts chosen for each token"), e.chosen, 1,
            4096);
  v.integer(p.field("width", "expert_width", "width of one expert; 0 = the ffn width"), e.width, 0,
            kMost);
  v.boolean(p.field("normalise", "experts_normalise", "scale the chosen weights to a sum of 1"),
            e.normalise);
  v.number(p.field("balance", "experts_balance", "weight of the balancing loss"), e.balance, 0,
           1e3);
  v.integers(p.field("dense_layers", "dense_layers", "layers without experts"), e.dense_layers, 0,
             4095);
  v.choice(p.field("score", "experts_score", "how routers turn logits into scores"), e.score,
           {"softmax", "sigmoid", "sparse_mixer"});
  v.number(p.field("tolerance", "experts_tolerance",
                   "sparse_mixer: half of the relative distance of a logit from the best one"),
           e.tolerance, 0, 1);
  v.boolean(p.field("selection_bias", "experts_selection_bias",
                    "routers add a bias to the scores for the choice of experts only"),
            e.selection_bias);
  v.number(p.field("scale", "experts_scale", "factor of the weights of the experts"), e.scale, 1e-3,
           kAnyFactor);
  v.integer(p.field("groups", "expert_groups", "equal groups of experts"), e.groups, 1, 4096);
  v.integer(p.field("groups_chosen", "expert_groups_chosen",
                    "groups from which a token's experts are chosen"),
            e.groups_chosen, 1, 4096);
  v.integer(p.field("shared", "shared_experts", "experts that process every token"), e.shared, 0,
            4096);
  v.integer(p.field("shared_width", "shared_experts_width",
                    "total width of the shared experts; 0 = their number x expert width"),
            e.shared_width, 0, kMost);
  v.boolean(p.field("shared_gate", "shared_experts_gate",
                    "multiply the output of the shared experts by a sigmoid gate"),
            e.shared_gate);
  v.boolean(p.field("sum_bias", "experts_sum_bias",
                    "one bias for the sum of the experts instead of biases of each expert"),
            e.sum_bias);
  v.boolean(p.field("router_bias", "router_bias", "bias of the routers"), e.router_bias);
}

void visit(FeedForwardSpec& f, OptionVisitor& v, const FieldScope& p) {
  v.boolean(p.field("present", "ffn", "layers have a feed-forward part"), f.present);
  v.choice(p.field("activation", "activation", "activation of the feed-forward layers"),
           f.activation, activations());
  v.boolean(p.field("xielu", "xielu", "xIELU with learned numbers instead of the activation"),
            f.xielu);
  v.boolean(p.field("gated", "gated", "gated feed-forward layers (GEGLU, SwiGLU)"), f.gated);
  v.number(p.field("gate_limit", "gate_limit",
                   "gated layers: largest gate, and largest magnitude of up; 0 = no limit"),
           f.gate_limit, 0, kAnyFactor);
  v.number(p.field("up_offset", "up_offset", "gated layers: added to up"), f.up_offset, 0,
           kAnyFactor);
  v.integer(p.field("width", "ffn_width", "width of the feed-forward layers; 0 = 4 x width"),
            f.width, 0, kMost);
  v.boolean(p.field("bias", "ffn_bias", "biases of the feed-forward layers"), f.bias);
  v.boolean(p.field("inner_bias", "ffn_inner_bias", "biases of gate and up, with ffn biases"),
            f.inner_bias);
  v.boolean(p.field("inner_norm", "ffn_inner_norm", "norm on the hidden layer of the ffn"),
            f.inner_norm);
  visit(f.experts, v, {p.at("experts"), p.prefix});
}

void visit(StackSpec& s, OptionVisitor& v, const FieldScope& p) {
  v.integer(p.field("layers", "layers", "number of layers; 0 = embeddings only"), s.layers, 0,
            4096);
  v.integer(p.field("layer_groups", "layer_groups",
                    "equal runs of layers with the same weights; 0 = each layer has its own"),
            s.layer_groups, 0, 4096);
  visit_mixers(
      s.mixers, v,
      p.field(
          "mixers", "mixer",
          "mixer of each layer: attention, latent, gated_delta, convolution, state_space, rnn, gru "
          "or lstm; the list repeats"));
  visit(s.position, v, {p.at("position"), p.prefix});
  visit(s.norm, v, {p.at("norm"), p.prefix});
  visit(s.placement, v, {p.at("placement"), p.prefix});
  v.boolean(p.field("parallel", "parallel", "attention and feed-forward side by side"), s.parallel);
  v.boolean(p.field("one_norm", "one_norm", "parallel sublayers read the output of one norm"),
            s.one_norm);
  v.boolean(p.field("embedding_norm", "embedding_norm", "norm on the embeddings"),
            s.embedding_norm);
  v.boolean(p.field("norm_before_positions", "norm_before_positions",
                    "positions are added after the norm on the embeddings"),
            s.norm_before_positions);
  v.boolean(p.field("first_norm", "first_norm", "norm on the input of the first attention"),
            s.first_norm);
  v.boolean(p.field("final_norm", "final_norm", "norm after the last layer"), s.final_norm);
  v.boolean(p.field("recurrent_pre_norm", "recurrent_pre_norm",
                    "recurrent layers have norms on their sublayers' inputs only"),
            s.recurrent_pre_norm);
  v.number(p.field("layer_scale", "layer_scale",
                   "initial learned factor of sublayers' outputs (LayerScale); 0 = none"),
           s.layer_scale, 0, kAnyFactor);
  v.boolean(p.field("residual", "residual", "add a sublayer's input to its output"), s.residual);
  v.number(p.field("residual_scale", "residual_scale",
                   "factor of a sublayer's input in the sum (DeepNorm's alpha)"),
           s.residual_scale, 1e-3, kAnyFactor);
  v.number(p.field("sublayer_scale", "sublayer_scale", "factor of a sublayer's output"),
           s.sublayer_scale, 1e-3, kAnyFactor);
  v.number(p.field("init_scale", "init_scale",
                   "factor of initial ffn, value and output weights (DeepNorm's beta); 0 = off"),
           s.init_scale, 0, kAnyFactor);
  v.boolean(p.field("zero_outputs", "zero_outputs", "initial outputs of all sublayers are 0"),
            s.zero_outputs);
  v.boolean(p.field("ternary", "ternary",
                    "matrices of layers are rounded to -1, 0 or 1, and their inputs to 8 bits"),
            s.ternary);
  if (p.prefix.empty())
    v.boolean(
        p.field("causal", "causal", "tokens see only earlier ones; false: for vectors of texts"),
        s.causal);
  visit(s.attention, v, {p.at("attention"), p.prefix});
  visit(s.recurrence, v, {p.at("recurrence"), p.prefix});
  visit(s.latent, v, {p.at("latent"), p.prefix});
  visit(s.delta, v, {p.at("delta"), p.prefix});
  visit(s.convolution, v, {p.at("convolution"), p.prefix});
  visit(s.state_space, v, {p.at("state_space"), p.prefix});
  visit(s.ffn, v, {p.at("ffn"), p.prefix});
}

void visit(std::optional<StackSpec>& stack, OptionVisitor& v, const FieldScope& p,
           const char* help) {
  bool present = stack.has_value();
  v.group(field(p.path, p.path, help), present);
  if (!present) return stack.reset();
  if (!stack) stack.emplace();
  visit(*stack, v, p);
}

void visit(InputSpec& i, OptionVisitor& v) {
  v.choice(field("input.kind", "input", "kind of encoder input"), i.kind,
           {"tokens", "image", "audio"});
  v.integer(field("input.size", "image_size", "width and height of an image in pixels"), i.size, 1,
            65536);
  v.integer(field("input.patch", "patch", "width and height of a patch in pixels"), i.patch, 1,
            65536);
  v.integer(field("input.channels", "channels", "channels of an image"), i.channels, 1, 1024);
  v.integer(field("input.class_tokens", "class_tokens",
                  "learned tokens before the patches: 1 = a class token, 2 = one for distillation "
                  "too"),
            i.class_tokens, 0, 2);
  v.integer(field("input.registers", "registers", "learned tokens without positions"), i.registers,
            0, 1024);
  v.boolean(field("input.bias", "patch_bias", "bias of the projection of patches"), i.bias);
  v.integer(field("input.bins", "bins", "bins of a mel spectrogram"), i.bins, 1, 65536);
  v.integer(field("input.frames", "frames", "audio frames that the encoder's layers see"), i.frames,
            1, kMost);
}

void visit(HeadSpec& h, OptionVisitor& v) {
  v.choice(field("head.kind", "head", "kind of the outputs"), h.kind,
           {"language_model", "pooled", "sequence", "token", "span"});
  v.boolean(field("head.tied", "tied_head", "the embedding is also the output matrix"), h.tied);
  v.integer(field("head.labels", "label_count", "labels of a head that is not a language model"),
            h.labels, 0, kMost);
  v.integer(field("head.projection", "projection",
                  "width of a projection of the pooled vector; 0 = no projection"),
            h.projection, 0, 65536);
  v.boolean(field("head.bias", "head_bias", "bias of the outputs"), h.bias);
  v.boolean(field("head.distilled", "distilled_head",
                  "average the outputs of the class token and of the distillation token"),
            h.distilled);
  v.boolean(field("head.transform", "head_transform", "an extra layer in the head"), h.transform);
  v.choice(field("head.activation", "head_activation", "activation of the head's layer"),
           h.activation, activations());
  v.boolean(field("head.transform_bias", "head_transform_bias", "bias of the head's layer"),
            h.transform_bias);
  v.boolean(field("head.transform_norm", "head_norm", "norm after the head's layer"),
            h.transform_norm);
  v.integer(field("head.transform_width", "head_transform_width",
                  "outputs of a language model's extra layer; 0 = the width of the embeddings"),
            h.transform_width, 0, kMost);
  v.choice(field("head.pooling", "pooling", "how tokens become one vector"), h.pooling,
           {"first", "mean", "last", "first_and_mean", "attention"});
  v.boolean(field("head.pool_transformed", "pool_transformed",
                  "pool the outputs of the head's extra layer instead of its inputs"),
            h.pool_transformed);
  v.number(field("head.scale", "head_scale", "factor of the logits"), h.scale, 1e-6, kAnyFactor);
  v.boolean(field("head.scaled", "head_scaled", "multiply hidden states by width^-1/2"), h.scaled);
  v.number(field("head.softcap", "head_softcap", "bound of the logits; 0 = none"), h.softcap, 0,
           kAnyFactor);
}

}  // namespace

void visit(Spec& s, OptionVisitor& v) {
  v.integer(field("vocabulary", "vocabulary", "tokens in the vocabulary; 0 = the tokenizer's"),
            s.vocabulary, 0, kMost);
  v.integer(
      field("source_vocabulary", "source_vocabulary", "vocabulary of the encoder; 0 = shared"),
      s.source_vocabulary, 0, kMost);
  v.integer(field("context", "context", "maximum tokens in one sequence"), s.context, 1, kMost);
  v.integer(field("width", "width", "width of the residual stream"), s.width, 1, kMost);
  v.integer(field("embedding_width", "embedding_width",
                  "width of the embeddings, which a matrix maps to the width; 0 = the width"),
            s.embedding_width, 0, kMost);
  v.integer(field("padding", "padding_token",
                  "padding token, whose embedding gets no gradient; -1 = none"),
            s.padding, -1, kMost);
  v.integer(field("token_types", "token_types", "number of token types; 0 = no embedding of types"),
            s.token_types, 0, 1024);
  v.boolean(field("scaled_embedding", "scaled_embedding", "multiply embeddings by sqrt(width)"),
            s.scaled_embedding);
  v.number(field("embedding_scale", "embedding_scale", "factor of the embeddings of tokens"),
           s.embedding_scale, 1e-6, kAnyFactor);
  visit(s.input, v);
  visit(s.encoder, v, {"encoder", "encoder_"}, "a stack with bidirectional attention");
  visit(s.decoder, v, {"decoder", ""}, "a stack with causal attention");
  visit(s.head, v);
  v.number(field("dropout.embedding", "embedding_dropout", "dropout probability of the embeddings"),
           s.dropout.embedding, 0, 0.95);
  v.number(
      field("dropout.attention", "attention_dropout", "dropout probability of attention weights"),
      s.dropout.attention, 0, 0.95);
  v.number(
      field("dropout.residual", "residual_dropout", "dropout probability of sublayers' outputs"),
      s.dropout.residual, 0, 0.95);
  v.number(field("init_deviation", "init_deviation", "standard deviation of the random weights"),
           s.init_deviation, 0, 10);
}

}  // namespace fovea::model
