#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fovea {

enum class NormKind { layer, rms };
enum class ActivationKind { relu, gelu, gelu_tanh, silu, tanh, quick_gelu, relu_squared, sigmoid };

// none: the order is unknown, or told by a bias. learned: a table, added to the embeddings.
// sinusoidal: waves, added (Vaswani et al. 2017, 3.5). rotary: queries and keys are turned (Su et
// al. 2021).
enum class PositionKind { none, learned, sinusoidal, rotary };

// What attention's scores receive by the distance of key and query. alibi: a slope for each head
// (Press et al. 2022). relative: learned, by bucket of distances and head (Raffel et al.
// 2020, 2.1).
enum class DistanceBias { none, alibi, relative };

// Where sin and cos of frequency i = 0 .. C/2 - 1 stand: neighbours (2i, 2i + 1) as in the paper;
// halves (i, i + C/2); spread: halves, the last frequency being exactly 1 / 10000.
enum class Waves { neighbours, halves, spread };

// How rotary frequencies are stretched for contexts longer than the trained one.
enum class RotaryScaling { none, linear, dynamic, llama3, yarn, longrope };

struct RotarySpec {
  float theta = 10000;
  float local_theta = 0;    // of layers with a window, which are then not scaled; 0 = as the others
  float share = 1;          // of a head's width that is turned
  bool neighbours = false;  // pairs (2i, 2i + 1), as in the paper, instead of (i, i + D/2)
  RotaryScaling scaling = RotaryScaling::none;
  float factor = 1;                             // new context / original context
  int64_t original_context = 0;                 // all but linear; 0 = the model's
  float low_frequency = 1, high_frequency = 4;  // llama3
  float fast = 32, slow = 1;  // yarn (Peng et al. 2023): turns over the context that bound the ramp
  float attention_factor = 0;  // yarn, longrope: cos and sin times this; 0 = from factor
  std::vector<float> short_factors = {}, long_factors = {};  // longrope: one for each pair
};

struct PositionSpec {
  PositionKind kind = PositionKind::learned;
  int64_t offset = 0;  // learned, sinusoidal: the table's row of position 0
  Waves waves = Waves::neighbours;
  bool stored = false;  // sinusoidal: the table lies in the checkpoint, although it never changes
  RotarySpec rotary = {};
  DistanceBias bias = DistanceBias::none;
  int64_t buckets = 32, distance = 128;  // relative: distances from `distance` on share a bucket
};

// Which of a sublayer's three norms are there:
//   y = sum_norm(x + output_norm(sublayer(input_norm(x))))
// Pre-norm: input. Post-norm (the original Transformer): sum.
struct Placement {
  bool input = true, output = false, sum = false;
};

struct NormSpec {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5f;
  bool bias = true;              // LayerNorm only
  bool unit_offset = false;      // the gain is 1 + weight
  bool epsilon_outside = false;  // (x - mean) / (deviation + epsilon), not inside the root
};

// What is normalised of queries and keys before their positions: each head, or all heads as one.
enum class QueryKeyNorm { none, head, all };

struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;    // = heads: MHA; fewer: GQA; 1: MQA. 0 = heads
  int64_t head_width = 0;  // 0 = width / heads
  // For each layer the keys that a query sees, itself included, on each side where it sees both;
  // 0 = all. One number stands for all layers, none for 0.
  std::vector<int64_t> windows = {};
  int64_t global = 0;  // with windows: the first tokens, which all see and which see all
  bool bias = true;    // of query and value, and of key unless key_bias is off
  bool key_bias = true;
  bool output_bias = true;
  QueryKeyNorm norm = QueryKeyNorm::none;
  float scale = 0;    // of the scores; 0 = 1 / sqrt(head_width)
  float softcap = 0;  // scores s become softcap * tanh(s / softcap); 0 = as they are
};

// Mixture of experts (Shazeer et al. 2017): each token goes through the `chosen` of `count`
// feed-forward layers that its router prefers.
struct ExpertsSpec {
  int64_t count = 0;  // 0 = one feed-forward layer for all tokens
  int64_t chosen = 2;
  int64_t width = 0;      // of an expert; 0 = ffn.width
  bool normalise = true;  // the chosen weights sum to 1
  float balance = 0;      // weight of the loss that keeps experts equally busy (Fedus et al. 2021)
  std::vector<int64_t> dense_layers = {};  // layers without experts
};

struct FeedForwardSpec {
  ActivationKind activation = ActivationKind::gelu_tanh;
  bool gated = false;  // down(f(gate(x)) * up(x)) instead of down(f(up(x)))
  int64_t width = 0;   // 0 = 4 * width
  bool bias = true;
  ExpertsSpec experts = {};
};

struct StackSpec {
  int64_t layers = 0;
  PositionSpec position = {};
  NormSpec norm = {};
  Placement placement = {};
  bool parallel = false;  // attention and feed-forward side by side: y = x + attention(x) + ffn(x)
  bool embedding_norm = false;  // on the embeddings
  bool first_norm = true;       // the first layer's attention has the norm on its input
  bool final_norm = true;
  AttentionSpec attention = {};
  FeedForwardSpec ffn = {};
};

// What an encoder reads. image: squares of `patch` pixels, and a learned token in front
// (Dosovitskiy et al. 2021). audio: a log-mel spectrogram through two convolutions, the second of
// stride 2 (Radford et al. 2022).
enum class InputKind { tokens, image, audio };
struct InputSpec {
  InputKind kind = InputKind::tokens;
  int64_t size = 224, patch = 16, channels = 3;  // image
  int64_t bins = 80, frames = 1500;              // audio: mel bins; frames behind the convolutions
};

// What the outputs are. language_model: the vocabulary, of each token (of the next one in a
// decoder). pooled: a vector for the whole. sequence, token, span: `labels` numbers for the whole,
// for each token, or for begin and end of an answer.
enum class HeadKind { language_model, pooled, sequence, token, span };
enum class Pooling { first, mean, last };

//   output(norm(activation(transform(pool(hidden)))))
struct HeadSpec {
  HeadKind kind = HeadKind::language_model;
  bool tied = true;        // language_model: the output matrix is the token embedding
  int64_t labels = 0;      // of the other kinds
  bool bias = false;       // of the output
  bool transform = false;  // a layer of its own before the output
  ActivationKind activation = ActivationKind::gelu;
  bool transform_bias = true, transform_norm = false;
  Pooling pooling = Pooling::first;  // pooled and sequence
  bool scaled = false;               // hidden states times width^-1/2 (Raffel et al. 2020)
  float softcap = 0;                 // logits z become softcap * tanh(z / softcap); 0 = as they are
};

struct DropoutSpec {
  float embedding = 0, attention = 0, residual = 0;
};

// A model as a value: plain data, every variant a field. Illegal combinations are refused by
// validated(), by name.
struct Spec {
  int64_t vocabulary = 0;         // 0 = from the tokenizer
  int64_t source_vocabulary = 0;  // an encoder's own embedding beside a decoder; 0 = the same one
  int64_t context = 0;            // most tokens in one sequence
  int64_t width = 0;
  int64_t padding = -1;  // a token that teaches the embedding nothing where it is read; -1 = none
  int64_t token_types = 0;        // an embedding of which sentence a token is in; 0 = none
  bool scaled_embedding = false;  // token embeddings times sqrt(width)
  InputSpec input;                // of the encoder
  // One of them, or both: then the decoder attends to the encoder.
  std::optional<StackSpec> encoder;                // every token sees every token
  std::optional<StackSpec> decoder = StackSpec();  // causal
  HeadSpec head;
  DropoutSpec dropout;
  // Of the normal distribution that weights begin with; projections into the residual stream have
  // this / sqrt(2 * layers) (Radford et al. 2019).
  float init_deviation = 0.02f;
};

// Visits every field of a Spec, for JSON, the command line and comparison: `path` is its place in
// spec.json, `flag` its option ("--layers"), `help` one line.
class SpecVisitor {
 public:
  virtual ~SpecVisitor() = default;
  using Text = const std::string&;
  virtual void integer(Text path, Text flag, Text help, int64_t& value, int64_t least,
                       int64_t most) = 0;
  virtual void integers(Text path, Text flag, Text help, std::vector<int64_t>& values,
                        int64_t least, int64_t most) = 0;
  virtual void number(Text path, Text flag, Text help, float& value, float least, float most) = 0;
  virtual void numbers(Text path, Text flag, Text help, std::vector<float>& values, float least,
                       float most) = 0;
  virtual void boolean(Text path, Text flag, Text help, bool& value) = 0;
  // value is an index into `names`.
  virtual void choice(Text path, Text flag, Text help, int& value,
                      const std::vector<std::string>& names) = 0;
  // Whether the group of fields under `path` is there; they are visited if it is afterwards.
  virtual void group(Text path, Text flag, Text help, bool& present) = 0;
};
void visit(Spec& spec, SpecVisitor& visitor);

std::vector<std::string> preset_names();
Spec preset(const std::string& name);  // InvalidArgument names the nearest preset

// Absent keys keep their defaults, unknown ones are refused; `name` is the file's, for errors.
Spec read_spec(const std::string& json, const std::string& name);
std::string write_spec(const Spec& spec);  // pretty JSON

// Fills what is 0 = derived and checks the whole; InvalidArgument names the field, its value and
// what is allowed.
Spec validated(Spec spec);

}  // namespace fovea
