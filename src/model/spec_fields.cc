#include "fovea/spec.h"

namespace fovea {
namespace {

constexpr int64_t kMost = int64_t{1} << 24;  // a limit above any axis of a real model
constexpr float kAnyFactor = 1e9f;           // limit of thetas, scales and caps

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

// The names of a group of fields: `path` in spec.json, and `flag`, the prefix of its options.
struct Place {
  std::string path, flag;
  std::string at(const char* field) const { return path + "." + field; }
  std::string option(const char* name) const { return flag + name; }
};

void visit(RotarySpec& r, SpecVisitor& v, const Place& p) {
  v.number(p.at("theta"), p.option("rope-theta"), "base of the rotary frequencies (RoPE theta)",
           r.theta, 1, kAnyFactor);
  v.number(p.at("local_theta"), p.option("local-theta"),
           "RoPE base of layers with a window; 0 = same as theta", r.local_theta, 0, kAnyFactor);
  v.number(p.at("share"), p.option("rotary-share"), "fraction of a head's width that is rotated",
           r.share, 0.0f, 1.0f);
  v.boolean(p.at("neighbours"), p.option("rotary-neighbours"), "rotate neighbouring pairs",
            r.neighbours);
  choose(v, p.at("scaling"), p.option("rope-scaling"),
         "scaling for contexts longer than in training", r.scaling,
         {"none", "linear", "dynamic", "llama3", "yarn", "longrope"});
  v.number(p.at("factor"), p.option("rope-factor"), "new context / original context", r.factor,
           1e-3f, kAnyFactor);
  v.integer(p.at("original_context"), p.option("original-context"),
            "context before scaling; 0 = context", r.original_context, 0, kMost);
  v.number(p.at("low_frequency"), p.option("low-frequency"),
           "lower bound of llama3 scaling, in turns", r.low_frequency, 1e-3f, kAnyFactor);
  v.number(p.at("high_frequency"), p.option("high-frequency"),
           "upper bound of llama3 scaling, in turns", r.high_frequency, 1e-3f, kAnyFactor);
  v.number(p.at("fast"), p.option("yarn-fast"), "upper bound of yarn scaling, in turns", r.fast,
           1e-3f, kAnyFactor);
  v.number(p.at("slow"), p.option("yarn-slow"), "lower bound of yarn scaling, in turns", r.slow,
           1e-3f, kAnyFactor);
  v.number(p.at("attention_factor"), p.option("rope-attention-factor"),
           "factor of cos and sin; 0 = from the scaling", r.attention_factor, 0, kAnyFactor);
  v.numbers(p.at("short_factors"), p.option("short-factors"),
            "longrope factors of short texts, one per pair", r.short_factors, 1e-3f, kAnyFactor);
  v.numbers(p.at("long_factors"), p.option("long-factors"),
            "longrope factors of long texts, one per pair", r.long_factors, 1e-3f, kAnyFactor);
}

void visit(PositionSpec& s, SpecVisitor& v, const Place& p) {
  choose(v, p.at("kind"), p.option("position"), "kind of positions", s.kind,
         {"none", "learned", "sinusoidal", "rotary"});
  v.integer(p.at("offset"), p.option("position-offset"), "row of the table for position 0",
            s.offset, 0, 1024);
  choose(v, p.at("waves"), p.option("waves"), "order of the sinusoids", s.waves,
         {"neighbours", "halves", "spread"});
  v.boolean(p.at("stored"), p.option("stored-waves"), "the checkpoint stores the sinusoids",
            s.stored);
  visit(s.rotary, v, {p.at("rotary"), p.flag});
  choose(v, p.at("bias"), p.option("distance-bias"), "position bias of the scores", s.bias,
         {"none", "alibi", "relative"});
  v.integer(p.at("buckets"), p.option("position-buckets"), "buckets of relative distances",
            s.buckets, 4, 65536);
  v.integer(p.at("distance"), p.option("position-distance"), "distances from N on share a bucket",
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
  v.integer(p.at("head_width"), p.option("head-width"), "width of one head; 0 = width / heads",
            a.head_width, 0, 256);
  v.integers(p.at("windows"), p.option("window"),
             "keys that a query sees: one number, or one per layer", a.windows, 0, kMost);
  v.integer(p.at("global"), p.option("global-tokens"),
            "tokens that see and are seen by all, with windows", a.global, 0, kMost);
  v.boolean(p.at("bias"), p.option("attention-bias"), "biases of query, key and value", a.bias);
  v.boolean(p.at("key_bias"), p.option("key-bias"), "bias of the key, with attention biases",
            a.key_bias);
  v.boolean(p.at("output_bias"), p.option("attention-output-bias"), "bias of attention's output",
            a.output_bias);
  choose(v, p.at("norm"), p.option("query-key-norm"), "norm of queries and keys", a.norm,
         {"none", "head", "all"});
  v.number(p.at("scale"), p.option("attention-scale"),
           "scale of the scores; 0 = 1 / sqrt(head width)", a.scale, 0.0f, kAnyFactor);
  v.number(p.at("softcap"), p.option("attention-softcap"), "bound of the scores; 0 = none",
           a.softcap, 0.0f, kAnyFactor);
}

void visit(FeedForwardSpec& f, SpecVisitor& v, const Place& p) {
  choose(v, p.at("activation"), p.option("activation"), "activation of the feed-forward layers",
         f.activation, activations());
  v.boolean(p.at("gated"), p.option("gated"), "gated feed-forward layers (GEGLU, SwiGLU)", f.gated);
  v.integer(p.at("width"), p.option("ffn-width"), "width of the feed-forward layers; 0 = 4 x width",
            f.width, 0, kMost);
  v.boolean(p.at("bias"), p.option("ffn-bias"), "biases of the feed-forward layers", f.bias);
  ExpertsSpec& e = f.experts;
  v.integer(p.at("experts.count"), p.option("experts"), "experts of each layer; 0 = none", e.count,
            0, 4096);
  v.integer(p.at("experts.chosen"), p.option("experts-chosen"), "experts chosen for each token",
            e.chosen, 1, 4096);
  v.integer(p.at("experts.width"), p.option("expert-width"),
            "width of one expert; 0 = the ffn width", e.width, 0, kMost);
  v.boolean(p.at("experts.normalise"), p.option("experts-normalise"),
            "scale the chosen weights to a sum of 1", e.normalise);
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
  v.boolean(p.at("placement.sum"), p.option("post-norm"), "norm on the sum after a sublayer",
            s.placement.sum);
  v.boolean(p.at("parallel"), p.option("parallel"), "attention and feed-forward side by side",
            s.parallel);
  v.boolean(p.at("embedding_norm"), p.option("embedding-norm"), "norm on the embeddings",
            s.embedding_norm);
  v.boolean(p.at("first_norm"), p.option("first-norm"), "norm of the first attention",
            s.first_norm);
  v.boolean(p.at("final_norm"), p.option("final-norm"), "norm after the last block", s.final_norm);
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
  v.integer("input.size", "--image-size", "width and height of an image in pixels", i.size, 1,
            65536);
  v.integer("input.patch", "--patch", "width and height of a patch in pixels", i.patch, 1, 65536);
  v.integer("input.channels", "--channels", "channels of an image", i.channels, 1, 1024);
  v.integer("input.bins", "--bins", "bins of a mel spectrogram", i.bins, 1, 65536);
  v.integer("input.frames", "--frames", "audio frames that the encoder's layers see", i.frames, 1,
            kMost);
}

void visit(HeadSpec& h, SpecVisitor& v) {
  choose(v, "head.kind", "--head", "what the outputs are", h.kind,
         {"language_model", "pooled", "sequence", "token", "span"});
  v.boolean("head.tied", "--tied-head", "the embedding is also the output matrix", h.tied);
  v.integer("head.labels", "--label-count", "labels of a head that is not a language model",
            h.labels, 0, kMost);
  v.boolean("head.bias", "--head-bias", "bias of the outputs", h.bias);
  v.boolean("head.transform", "--head-transform", "an extra layer in the head", h.transform);
  choose(v, "head.activation", "--head-activation", "activation of the head's layer", h.activation,
         activations());
  v.boolean("head.transform_bias", "--head-transform-bias", "bias of the head's layer",
            h.transform_bias);
  v.boolean("head.transform_norm", "--head-norm", "norm after the head's layer", h.transform_norm);
  choose(v, "head.pooling", "--pooling", "how tokens become one vector", h.pooling,
         {"first", "mean", "last"});
  v.boolean("head.scaled", "--head-scaled", "multiply hidden states by width^-1/2", h.scaled);
  v.number("head.softcap", "--head-softcap", "bound of the logits; 0 = none", h.softcap, 0.0f,
           kAnyFactor);
}

}  // namespace

void visit(Spec& s, SpecVisitor& v) {
  v.integer("vocabulary", "--vocabulary", "tokens that the model knows; 0 = the tokenizer's",
            s.vocabulary, 0, kMost);
  v.integer("source_vocabulary", "--source-vocabulary", "vocabulary of the encoder; 0 = shared",
            s.source_vocabulary, 0, kMost);
  v.integer("context", "--context", "maximum tokens in one sequence", s.context, 1, kMost);
  v.integer("width", "--width", "width of the residual stream", s.width, 1, kMost);
  v.integer("padding", "--padding-token", "padding token, excluded from the loss; -1 = none",
            s.padding, -1, kMost);
  v.integer("token_types", "--token-types", "number of token types; 0 = one", s.token_types, 0,
            1024);
  v.boolean("scaled_embedding", "--scaled-embedding", "multiply embeddings by sqrt(width)",
            s.scaled_embedding);
  visit(s.input, v);
  visit(s.encoder, v, {"encoder", "--encoder-"}, "--encoder",
        "a stack with bidirectional attention");
  visit(s.decoder, v, {"decoder", "--"}, "--decoder", "a stack with causal attention");
  visit(s.head, v);
  v.number("dropout.embedding", "--embedding-dropout", "dropout probability of the embeddings",
           s.dropout.embedding, 0.0f, 0.95f);
  v.number("dropout.attention", "--attention-dropout", "dropout probability of attention weights",
           s.dropout.attention, 0.0f, 0.95f);
  v.number("dropout.residual", "--residual-dropout", "dropout probability of sublayers' outputs",
           s.dropout.residual, 0.0f, 0.95f);
  v.number("init_deviation", "--init-deviation", "standard deviation of the random weights",
           s.init_deviation, 0.0f, 10.0f);
}

}  // namespace fovea
