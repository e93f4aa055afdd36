#include "fovea/spec.h"

namespace fovea {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // no axis of a model that fits any machine is longer
constexpr float kAnyFactor = 1e9f;           // of thetas, scales and caps

template <class Enum>
void choose(SpecVisitor& v, const std::string& path, const std::string& flag,
            const std::string& help, Enum& value, const std::vector<std::string>& names) {
  int index = static_cast<int>(value);
  v.choice(path, flag, help, index, names);
  value = static_cast<Enum>(index);
}

const std::vector<std::string>& activations() {
  static const std::vector<std::string> names = {"relu", "gelu",       "gelu_tanh",    "silu",
                                                 "tanh", "quick_gelu", "relu_squared", "sigmoid"};
  return names;
}

// Where a group of fields stands: `path` in spec.json, `flag` before its options.
struct Place {
  std::string path, flag;
  std::string at(const char* field) const { return path + "." + field; }
  std::string option(const char* name) const { return flag + name; }
};

void visit(RotarySpec& r, SpecVisitor& v, const Place& p) {
  v.number(p.at("theta"), p.option("rope-theta"), "base of the rotary frequencies", r.theta, 1,
           kAnyFactor);
  v.number(p.at("local_theta"), p.option("local-theta"), "the same in layers with a window; 0 = so",
           r.local_theta, 0, kAnyFactor);
  v.number(p.at("share"), p.option("rotary-share"), "of a head's width that is turned", r.share,
           0.0f, 1.0f);
  v.boolean(p.at("neighbours"), p.option("rotary-neighbours"), "turn neighbouring pairs",
            r.neighbours);
  choose(v, p.at("scaling"), p.option("rope-scaling"), "for contexts longer than the trained one",
         r.scaling, {"none", "linear", "dynamic", "llama3", "yarn", "longrope"});
  v.number(p.at("factor"), p.option("rope-factor"), "new context / original context", r.factor,
           1e-3f, kAnyFactor);
  v.integer(p.at("original_context"), p.option("original-context"), "before scaling; 0 = context",
            r.original_context, 0, kMost);
  v.number(p.at("low_frequency"), p.option("low-frequency"), "llama3's lower bound, in turns",
           r.low_frequency, 1e-3f, kAnyFactor);
  v.number(p.at("high_frequency"), p.option("high-frequency"), "llama3's upper bound, in turns",
           r.high_frequency, 1e-3f, kAnyFactor);
  v.number(p.at("fast"), p.option("yarn-fast"), "yarn's upper bound, in turns", r.fast, 1e-3f,
           kAnyFactor);
  v.number(p.at("slow"), p.option("yarn-slow"), "yarn's lower bound, in turns", r.slow, 1e-3f,
           kAnyFactor);
  v.number(p.at("attention_factor"), p.option("rope-attention-factor"),
           "of cos and sin; 0 = from the factor", r.attention_factor, 0, kAnyFactor);
  v.numbers(p.at("short_factors"), p.option("short-factors"), "longrope's, one a pair",
            r.short_factors, 1e-3f, kAnyFactor);
  v.numbers(p.at("long_factors"), p.option("long-factors"), "longrope's, one a pair",
            r.long_factors, 1e-3f, kAnyFactor);
}

void visit(PositionSpec& s, SpecVisitor& v, const Place& p) {
  choose(v, p.at("kind"), p.option("position"), "how a token knows its place", s.kind,
         {"none", "learned", "sinusoidal", "rotary"});
  v.integer(p.at("offset"), p.option("position-offset"), "the table's row of position 0", s.offset,
            0, 1024);
  choose(v, p.at("waves"), p.option("waves"), "order of the sinusoids", s.waves,
         {"neighbours", "halves", "spread"});
  v.boolean(p.at("stored"), p.option("stored-waves"), "the sinusoids lie in the checkpoint",
            s.stored);
  visit(s.rotary, v, {p.at("rotary"), p.flag});
  choose(v, p.at("bias"), p.option("distance-bias"), "what scores receive by distance", s.bias,
         {"none", "alibi", "relative"});
  v.integer(p.at("buckets"), p.option("position-buckets"), "of relative distances", s.buckets, 4,
            65536);
  v.integer(p.at("distance"), p.option("position-distance"), "from which on all share a bucket",
            s.distance, 4, kMost);
}

void visit(NormSpec& n, SpecVisitor& v, const Place& p) {
  choose(v, p.at("kind"), p.option("norm"), "kind of normalisation", n.kind, {"layer", "rms"});
  v.number(p.at("epsilon"), p.option("norm-epsilon"), "added to the variance", n.epsilon, 0.0f,
           1.0f);
  v.boolean(p.at("bias"), p.option("norm-bias"), "LayerNorm adds a bias", n.bias);
  v.boolean(p.at("unit_offset"), p.option("norm-unit-offset"), "the gain is 1 + weight",
            n.unit_offset);
  v.boolean(p.at("epsilon_outside"), p.option("norm-epsilon-outside"),
            "epsilon is added to the deviation instead", n.epsilon_outside);
}

void visit(AttentionSpec& a, SpecVisitor& v, const Place& p) {
  v.integer(p.at("heads"), p.option("heads"), "attention heads", a.heads, 1, 4096);
  v.integer(p.at("kv_heads"), p.option("kv-heads"), "key-value heads; 0 = heads", a.kv_heads, 0,
            4096);
  v.integer(p.at("head_width"), p.option("head-width"), "of one head; 0 = width / heads",
            a.head_width, 0, 256);
  v.integers(p.at("windows"), p.option("window"), "keys that a query sees, or one for each layer",
             a.windows, 0, kMost);
  v.integer(p.at("global"), p.option("global-tokens"), "with windows: see and are seen by all",
            a.global, 0, kMost);
  v.boolean(p.at("bias"), p.option("attention-bias"), "biases of query, key and value", a.bias);
  v.boolean(p.at("key_bias"), p.option("key-bias"), "with biases: of the key too", a.key_bias);
  v.boolean(p.at("output_bias"), p.option("attention-output-bias"), "bias of attention's output",
            a.output_bias);
  choose(v, p.at("norm"), p.option("query-key-norm"), "norm of queries and keys", a.norm,
         {"none", "head", "all"});
  v.number(p.at("scale"), p.option("attention-scale"), "of the scores; 0 = 1 / sqrt(head width)",
           a.scale, 0.0f, kAnyFactor);
  v.number(p.at("softcap"), p.option("attention-softcap"), "bound of the scores; 0 = none",
           a.softcap, 0.0f, kAnyFactor);
}

void visit(FeedForwardSpec& f, SpecVisitor& v, const Place& p) {
  choose(v, p.at("activation"), p.option("activation"), "of the feed-forward layers", f.activation,
         activations());
  v.boolean(p.at("gated"), p.option("gated"), "gated feed-forward layers (GEGLU, SwiGLU)", f.gated);
  v.integer(p.at("width"), p.option("ffn-width"), "of the feed-forward layers; 0 = 4 x width",
            f.width, 0, kMost);
  v.boolean(p.at("bias"), p.option("ffn-bias"), "biases of the feed-forward layers", f.bias);
  ExpertsSpec& e = f.experts;
  v.integer(p.at("experts.count"), p.option("experts"), "feed-forward layers to choose from",
            e.count, 0, 4096);
  v.integer(p.at("experts.chosen"), p.option("experts-chosen"), "for each token", e.chosen, 1,
            4096);
  v.integer(p.at("experts.width"), p.option("expert-width"), "of one; 0 = the ffn width", e.width,
            0, kMost);
  v.boolean(p.at("experts.normalise"), p.option("experts-normalise"), "the chosen weights sum to 1",
            e.normalise);
  v.number(p.at("experts.balance"), p.option("experts-balance"), "weight of the balancing loss",
           e.balance, 0.0f, 1e3f);
  v.integers(p.at("experts.dense_layers"), p.option("dense-layers"), "layers without experts",
             e.dense_layers, 0, 4095);
}

void visit(StackSpec& s, SpecVisitor& v, const Place& p) {
  v.integer(p.at("layers"), p.option("layers"), "blocks", s.layers, 1, 4096);
  visit(s.position, v, {p.at("position"), p.flag});
  visit(s.norm, v, {p.at("norm"), p.flag});
  v.boolean(p.at("placement.input"), p.option("pre-norm"), "norm on a sublayer's input",
            s.placement.input);
  v.boolean(p.at("placement.output"), p.option("output-norm"), "norm on a sublayer's output",
            s.placement.output);
  v.boolean(p.at("placement.sum"), p.option("post-norm"), "norm on the sum behind a sublayer",
            s.placement.sum);
  v.boolean(p.at("parallel"), p.option("parallel"), "attention and feed-forward side by side",
            s.parallel);
  v.boolean(p.at("embedding_norm"), p.option("embedding-norm"), "norm on the embeddings",
            s.embedding_norm);
  v.boolean(p.at("first_norm"), p.option("first-norm"), "the first attention has its norm",
            s.first_norm);
  v.boolean(p.at("final_norm"), p.option("final-norm"), "norm behind the last block", s.final_norm);
  visit(s.attention, v, {p.at("attention"), p.flag});
  visit(s.ffn, v, {p.at("ffn"), p.flag});
}

void visit(std::optional<StackSpec>& stack, SpecVisitor& v, const Place& p, const std::string& flag,
           const std::string& help) {
  bool present = stack.has_value();
  v.group(p.path, flag, help, present);
  if (!present) return stack.reset();
  if (!stack) stack.emplace();
  visit(*stack, v, p);
}

void visit(InputSpec& i, SpecVisitor& v) {
  choose(v, "input.kind", "--input", "what an encoder reads", i.kind, {"tokens", "image", "audio"});
  v.integer("input.size", "--image-size", "pixels on a side", i.size, 1, 65536);
  v.integer("input.patch", "--patch", "pixels on a side of a square", i.patch, 1, 65536);
  v.integer("input.channels", "--channels", "of an image", i.channels, 1, 1024);
  v.integer("input.bins", "--bins", "of a mel spectrogram", i.bins, 1, 65536);
  v.integer("input.frames", "--frames", "of audio that the encoder's layers see", i.frames, 1,
            kMost);
}

void visit(HeadSpec& h, SpecVisitor& v) {
  choose(v, "head.kind", "--head", "what the outputs are", h.kind,
         {"language_model", "pooled", "sequence", "token", "span"});
  v.boolean("head.tied", "--tied-head", "the embedding is also the output matrix", h.tied);
  v.integer("head.labels", "--label-count", "of a head that is no language model's", h.labels, 0,
            kMost);
  v.boolean("head.bias", "--head-bias", "bias of the outputs", h.bias);
  v.boolean("head.transform", "--head-transform", "a layer of the head's own", h.transform);
  choose(v, "head.activation", "--head-activation", "of that layer", h.activation, activations());
  v.boolean("head.transform_bias", "--head-transform-bias", "bias of that layer", h.transform_bias);
  v.boolean("head.transform_norm", "--head-norm", "norm behind that layer", h.transform_norm);
  choose(v, "head.pooling", "--pooling", "how tokens become one vector", h.pooling,
         {"first", "mean", "last"});
  v.boolean("head.scaled", "--head-scaled", "hidden states times width^-1/2", h.scaled);
  v.number("head.softcap", "--head-softcap", "bound of the logits; 0 = none", h.softcap, 0.0f,
           kAnyFactor);
}

}  // namespace

void visit(Spec& s, SpecVisitor& v) {
  v.integer("vocabulary", "--vocabulary", "tokens that the model knows; 0 = the tokenizer's",
            s.vocabulary, 0, kMost);
  v.integer("source_vocabulary", "--source-vocabulary", "of the encoder; 0 = the same",
            s.source_vocabulary, 0, kMost);
  v.integer("context", "--context", "most tokens in one sequence", s.context, 1, kMost);
  v.integer("width", "--width", "of the residual stream", s.width, 1, kMost);
  v.integer("padding", "--padding-token", "token whose reading teaches nothing; -1 = none",
            s.padding, -1, kMost);
  v.integer("token_types", "--token-types", "kinds of tokens; 0 = one", s.token_types, 0, 1024);
  v.boolean("scaled_embedding", "--scaled-embedding", "embeddings times sqrt(width)",
            s.scaled_embedding);
  visit(s.input, v);
  visit(s.encoder, v, {"encoder", "--encoder-"}, "--encoder", "a stack that sees both ways");
  visit(s.decoder, v, {"decoder", "--"}, "--decoder", "a stack that sees what came before");
  visit(s.head, v);
  v.number("dropout.embedding", "--embedding-dropout", "probability, on the embeddings",
           s.dropout.embedding, 0.0f, 0.95f);
  v.number("dropout.attention", "--attention-dropout", "probability, on attention weights",
           s.dropout.attention, 0.0f, 0.95f);
  v.number("dropout.residual", "--residual-dropout", "probability, on sublayers' outputs",
           s.dropout.residual, 0.0f, 0.95f);
  v.number("init_deviation", "--init-deviation", "of the random weights", s.init_deviation, 0.0f,
           10.0f);
}

}  // namespace fovea
