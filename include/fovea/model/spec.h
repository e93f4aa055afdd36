#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fovea/core/op_options.h"
#include "fovea/core/options.h"

namespace fovea::model {

// layer: LayerNorm (Ba et al. 2016). rms: RMSNorm (Zhang and Sennrich 2019). dyt: weight *
// tanh(alpha * x) + bias with a learned number alpha (Zhu et al. 2025).
enum class NormKind { layer, rms, dyt };

// Position encodings. none: no positions, or only a DistanceBias. learned: a table, added to the
// embeddings. sinusoidal: sine and cosine waves, added to the embeddings (Vaswani et al. 2017,
// 3.5). rotary: queries and keys are rotated (Su et al. 2021).
enum class PositionKind { none, learned, sinusoidal, rotary };

// Bias that depends on the distance between query and key, added to attention scores. alibi:
// linear, one slope per head (Press et al. 2022). relative: learned, one value per head and bucket
// of distances (Raffel et al. 2020, 2.1). disentangled: products of the content of one token and a
// learned vector of the distance to the other (He et al. 2021, "DeBERTa", eq. 4).
enum class DistanceBias { none, alibi, relative, disentangled };

// The elements with sin and cos of frequency i = 0 .. C/2 - 1. neighbours: (2i, 2i + 1), as in
// Vaswani et al. 2017. halves: (i, i + C/2). spread: like halves, with frequencies spread so that
// the last one is exactly 1 / 10000.
enum class Waves { neighbours, halves, spread };

// How rotary frequencies are scaled for contexts longer than the original one.
enum class RotaryScaling { none, linear, dynamic, llama3, yarn, longrope };

struct RotarySpec {
  float theta = 10000;
  float local_theta = 0;    // theta of windowed layers, which are then unscaled; 0 = same as theta
  float share = 1;          // fraction of each head's width D that is rotated
  bool neighbours = false;  // rotate pairs (2i, 2i + 1), as Su et al. do, instead of (i, i + D/2)
  RotaryScaling scaling = RotaryScaling::none;
  float factor = 1;                             // new context / original context
  int64_t original_context = 0;                 // all kinds but linear; 0 = the model's context
  float low_frequency = 1, high_frequency = 4;  // llama3
  // yarn (Peng et al. 2023): numbers of turns over the original context that bound the ramp.
  float fast = 32, slow = 1;
  bool whole_pairs = true;     // yarn: the bounds of the ramp are rounded to whole pairs
  float attention_factor = 0;  // yarn, longrope: scales cos and sin; 0 = derived from factor
  std::vector<float> short_factors = {}, long_factors = {};  // longrope: one factor per pair
  // Queries at position p are multiplied by 1 + query_growth * log(1 + floor(p /
  // original_context)), so that the softmax of long texts stays sharp, as in Llama 4; 0 = off.
  float query_growth = 0;
  std::vector<int64_t> unrotated = {};  // indices of layers whose queries and keys are not rotated
};

// With the query q_t, the key k_s, and the key K_d and the query Q_d of the vector of the distance
// d = t - s, the scores are those of q_t . k_s + q_t . K_d + Q_d . k_s, of which the last two terms
// may be missing. AttentionSpec::scale is usually smaller, since a score has several terms.
struct DisentangledSpec {
  bool content_to_position = true;  // q_t . K_d
  bool position_to_content = true;  // Q_d . k_s
  bool shared = true;               // K and Q are computed by the layers of k and q
  bool norm = false;                // of the vectors
};

struct PositionSpec {
  PositionKind kind = PositionKind::learned;
  int64_t offset = 0;  // learned, sinusoidal: the table row of position 0
  Waves waves = Waves::neighbours;
  bool stored = false;  // sinusoidal, rotary: the checkpoint has the table of sines and cosines
  RotarySpec rotary = {};
  DistanceBias bias = DistanceBias::none;
  // relative, disentangled: the number of values or vectors, and the distance from which all share
  // one. A quarter of the buckets of each sign hold logarithmic ranges of distances; in
  // disentangled attention, half of the buckets = distance means one bucket for each distance.
  int64_t buckets = 32, distance = 128;
  bool bias_by_layer = false;  // relative: each layer has its own values
  DisentangledSpec disentangled = {};
};

// Which norms a sublayer has:
//   y = sum_norm(residual_scale * x + output_norm(sublayer_scale * sublayer(input_norm(x))))
// Pre-norm: input. Post-norm (the original Transformer): sum.
struct Placement {
  bool input = true, output = false, sum = false;
};

struct NormSpec {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5f;
  bool bias = true;          // layer and dyt
  bool gain = true;          // layer and rms: false = neither gain nor bias
  bool unit_offset = false;  // the gain is 1 + weight
  // (x - mean) / (deviation + epsilon) instead of epsilon inside the root
  bool epsilon_outside = false;
  float alpha = 0.5f;  // dyt: initial value of alpha
};

// The norm of queries and keys. head: of each head. all: over all heads. each: of each head, with
// gains of its own and no biases (Dehghani et al. 2023).
enum class QueryKeyNorm { none, head, all, each };

struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;     // equal to heads: MHA; fewer: GQA; 1: MQA; 0 = heads
  int64_t head_width = 0;   // of queries and keys; 0 = width / heads
  int64_t value_width = 0;  // of values; 0 = head_width
  // Window of each layer: the number of keys that a query sees in each allowed direction, including
  // its own; 0 = all. One element applies to all layers; empty = no windows.
  std::vector<int64_t> windows = {};
  int64_t global = 0;  // with windows: number of first tokens that see, and are seen by, all tokens
  bool bias = true;    // of query and value; of key if key_bias is also true
  bool key_bias = true;
  bool output_bias = true;
  QueryKeyNorm norm = QueryKeyNorm::none;
  bool norm_rotated = false;  // the norm follows the rotation instead of preceding it
  bool heads_norm = false;    // a norm over the outputs of all heads, before the output layer
  float scale = 0;            // scale of the scores; 0 = 1 / sqrt(head_width)
  float softcap = 0;          // scores s become softcap * tanh(s / softcap); 0 = off
  // The outputs of the heads are multiplied by the sigmoid of a gate (Qiu et al. 2025).
  bool gated = false;
  // Each head has a learned score of a key without a value, a sink, that takes a share of each
  // softmax (OpenAI 2025, "gpt-oss-120b & gpt-oss-20b Model Card", 2.2).
  bool sinks = false;
  // Share of the first attention layer's values in those of the later ones: v = (1 - share) v +
  // share * v_first (Zhou et al. 2024, eq. 8, has 1/2 of each); 0 = off.
  float value_residual = 0;
};

// How a router turns its logits into scores: a softmax over all experts; a sigmoid of each logit
// (DeepSeek-AI 2024, "DeepSeek-V3"); for one choice after the other, a softmax over the experts
// whose logits are close to that of the best one (SparseMixer-v2, Liu et al. 2024, "GRIN").
enum class ExpertScore { softmax, sigmoid, sparse_mixer };

// Mixture of experts (Shazeer et al. 2017): a router selects `chosen` of `count` feed-forward
// layers for each token.
struct ExpertsSpec {
  int64_t count = 0;  // 0 = one feed-forward layer for all tokens
  int64_t chosen = 2;
  int64_t width = 0;                       // hidden width of an expert; 0 = ffn.width
  bool normalise = true;                   // the weights of the chosen experts sum to 1
  float balance = 0;                       // weight of the load-balancing loss (Fedus et al. 2021)
  std::vector<int64_t> dense_layers = {};  // indices of layers without experts
  ExpertScore score = ExpertScore::softmax;
  // sparse_mixer: an expert is close to the best one if (best - logit) / max(|logit|, best) is at
  // most twice this number.
  float tolerance = 0.01f;
  // A number per expert, added to its score for the choice of experts only; not trained.
  bool selection_bias = false;
  float scale = 1;  // factor of the weights of the chosen experts
  // The experts form `groups` equal groups, of which `groups_chosen` are eligible for a token:
  // those with the best expert or, with selection_bias, the largest sum of the scores of two
  // experts.
  int64_t groups = 1, groups_chosen = 1;
  // Shared experts (Dai et al. 2024) process every token; their output is added. They are one
  // feed-forward layer of shared_width; 0 = shared * width.
  int64_t shared = 0, shared_width = 0;
  bool shared_gate = false;  // multiply their output by sigmoid(w x), as Qwen2-MoE does
  // One bias is added to the weighted sum of the chosen experts, which have no biases of their own.
  bool sum_bias = false;
  bool router_bias = false;
};

struct FeedForwardSpec {
  bool present = true;  // false: layers consist of their mixer only
  Activation activation = Activation::gelu_tanh;
  bool xielu = false;  // xIELU with learned numbers of each layer instead (Huang 2024, 4)
  bool gated = false;  // down(f(gate(x)) * up(x)) instead of down(f(up(x)))
  // gated: f reads min(gate(x), limit), and up(x) is clipped to [-limit, limit]; 0 = no limit.
  float gate_limit = 0;
  float up_offset = 0;      // gated: added to up(x)
  bool inner_norm = false;  // a norm on the input of down
  int64_t width = 0;        // 0 = 4 * width
  bool bias = true;         // of down; of gate and up if inner_bias is also true
  bool inner_bias = true;
  ExpertsSpec experts = {};
};

// What mixes the tokens of a layer. rnn, gru, lstm: a recurrence with these cells. latent:
// multi-head latent attention. gated_delta: linear attention with the gated delta rule.
// convolution: a gated convolution over the last tokens. state_space: the state space model of
// Mamba-2.
enum class MixerKind { attention, rnn, gru, lstm, latent, gated_delta, convolution, state_space };

struct RecurrenceSpec {
  int64_t width =
      0;  // of the state; 0 = the model's. If they differ, a matrix maps it to the model's
  bool bias = true;  // of both products of the gates
};

// Multi-head latent attention (DeepSeek-AI 2024, 2.1): the keys and values of all heads are
// computed from one vector per token, the latent. The cache stores only the latent and a rotated
// key that all heads share. The heads, their widths, the scale and the cap are those of
// AttentionSpec; a key has head_width + rotary elements. The latents have a norm of the stack's
// kind.
struct LatentSpec {
  int64_t width = 0;        // of the latent of keys and values; 0 = 4 * head_width
  int64_t query_width = 0;  // of a latent of the queries; 0 = queries are computed directly
  // Width of the shared key, with rotary positions; otherwise there is none. 0 = head_width / 2,
  // rounded up to an even number.
  int64_t rotary = 0;
  float epsilon = 0;  // of the norms of the latents; 0 = the stack's
};

// Linear attention with the gated delta rule (Yang et al. 2024, "Gated Delta Networks"). A head has
// a state [key_width, value_width] that decays, and stores a value at a key after it has removed
// what the state has there. Queries, keys and values pass through a convolution over the last
// tokens and SiLU; queries and keys have length 1. The outputs have an RMSNorm by head, and are
// multiplied by SiLU of a gate.
struct DeltaSpec {
  int64_t heads = 0;      // of values; 0 = those of attention
  int64_t key_heads = 0;  // of queries and keys, each for heads / key_heads heads; 0 = heads
  // Head h reads the key head h % key_heads, as in GGUF files, instead of h / (heads / key_heads).
  bool tiled = false;
  int64_t key_width = 0;    // of a query and a key; 0 = attention's head_width
  int64_t value_width = 0;  // 0 = key_width
  int64_t convolution = 4;  // tokens that it reads
  // beta is up to 2 instead of 1, so that states may change their sign (Grazzi et al. 2025).
  bool doubled = false;
  float epsilon = 0;  // of the outputs' norm; 0 = the stack's
};

// A gated convolution over the last tokens (Liquid AI 2025, "LFM2 Technical Report"), of each
// column by itself: y = output(after(x) * convolution(before(x) * value(x))).
struct ConvolutionSpec {
  int64_t width = 0;   // columns; 0 = the model's width
  int64_t tokens = 3;  // that it reads
  bool bias = false;   // of the convolution and of the products
};

// The state space model of Mamba-2 (Dao and Gu 2024, "Transformers are SSMs"). A head has a state
// [state_width, head_width]: with the step s = softplus(step(x)), it decays by exp(-exp(rate) s),
// stores s times the head's input at the vector B, and is read at the vector C. The inputs, B and
// C pass through a convolution over the last tokens and SiLU. The outputs, plus the inputs times a
// learned number of the head, are multiplied by SiLU of a gate.
struct StateSpaceSpec {
  int64_t heads = 0;  // 0 = 2 * the model's width / head_width
  int64_t head_width = 64;
  int64_t groups = 1;         // pairs of B and C, each for heads / groups heads
  int64_t state_width = 128;  // of B and C
  int64_t convolution = 4;    // tokens that it reads
  bool convolution_bias = true;
  // An RMSNorm of the gated outputs, before or (norm_first) behind their gate, over all heads or
  // (norm_groups > 1) over each of these equal parts of them.
  bool norm = true;
  bool norm_first = false;
  int64_t norm_groups = 1;
  float least_step = 0, most_step = 0;  // the steps are clipped; most_step: 0 = no limit
};

struct StackSpec {
  int64_t layers = -1;  // 0 = embeddings only; -1 = not set, which validated() refuses
  // The layers form this number of runs of equal length; those of a run have the same weights (Lan
  // et al. 2020, 3.1). 0 = each layer has its own.
  int64_t layer_groups = 0;
  // The mixer of each layer; fewer elements repeat; empty = attention in all layers. Recurrent
  // layers are causal, so only a decoder has them.
  std::vector<MixerKind> mixers = {};
  PositionSpec position = {};
  NormSpec norm = {};
  Placement placement = {};
  bool parallel = false;        // y = x + attention(input_norm(x)) + ffn(input_norm(x))
  bool one_norm = false;        // parallel: both sublayers read the output of attention's norm
  bool embedding_norm = false;  // a norm on the embeddings
  // It reads the embeddings of tokens and types, as if they had no scale, before positions are
  // added.
  bool norm_before_positions = false;
  bool first_norm = true;  // the first layer's attention has an input norm
  bool final_norm = true;
  // Layers with a recurrent mixer have input norms only, whatever the placement, as in OLMo Hybrid.
  bool recurrent_pre_norm = false;
  // Initial value of a learned factor of each element of a sublayer's output (LayerScale: Touvron
  // et al. 2021, "Going deeper with Image Transformers", eq. 4); 0 = no such factors.
  float layer_scale = 0;
  bool residual = true;      // add a sublayer's input to its output
  float residual_scale = 1;  // factor of that input (DeepNorm's alpha: Wang et al. 2022)
  float sublayer_scale = 1;  // factor of a sublayer's output (IBM 2024, "Granite 3.0")
  // Factor of the initial weights of feed-forward layers and of attention's values and outputs
  // (DeepNorm's beta); 0 = 1, and 1 / sqrt(2 * layers) for projections into the residual stream.
  float init_scale = 0;
  bool zero_outputs = false;  // the projections into the residual stream begin at 0
  // The products of the layers have matrices rounded to -1, 0 or 1 times the mean of their
  // magnitudes, and inputs rounded to 8 bits (Ma et al. 2024, "The Era of 1-bit LLMs", 2).
  bool ternary = false;
  // A decoder's tokens see only earlier ones. false, as in embedders made from decoders: without a
  // cache, they see all; with one, as in generation, the earlier ones.
  bool causal = true;
  AttentionSpec attention = {};
  RecurrenceSpec recurrence = {};
  LatentSpec latent = {};
  DeltaSpec delta = {};
  ConvolutionSpec convolution = {};
  StateSpaceSpec state_space = {};
  FeedForwardSpec ffn = {};
};

// Input of an encoder. image: patches of `patch` x `patch` pixels, preceded by learned tokens: the
// class token (Dosovitskiy et al. 2021), a second one for distillation (Touvron et al. 2021,
// "Training data-efficient image transformers"), and registers, which have no positions (Darcet et
// al. 2024). audio: a log-mel spectrogram and two convolutions, the second
// with stride 2 (Radford et al. 2022).
enum class InputKind { tokens, image, audio };
struct InputSpec {
  InputKind kind = InputKind::tokens;
  int64_t size = 224, patch = 16, channels = 3;  // image
  int64_t class_tokens = 1, registers = 0;       // image: learned tokens
  bool bias = true;                              // image: of the projection of the patches
  int64_t bins = 80, frames = 1500;              // audio: mel bins; frames after the convolutions
};

// Outputs of the model. language_model: logits of the vocabulary per token (of the next token in a
// decoder). pooled: one vector per sequence. sequence, token, span: `labels` logits per sequence,
// per token, or for the begin and end of a span.
enum class HeadKind { language_model, pooled, sequence, token, span };

// What a classifier predicts for a text; transformers writes these names into config.json.
// single_label: one of several labels. multi_label: any number of labels. regression: a number.
// automatic: the data determines it.
enum class ProblemType { automatic, single_label, multi_label, regression };

// How the tokens of a sequence become one vector. first_and_mean: the first token, followed by the
// mean of the tokens of an image without class tokens and registers; twice the width (Oquab et al.
// 2023). attention: a learned query attends to all tokens, and y + ffn(norm(y)) follows (Zhai et
// al. 2022, "Scaling Vision Transformers", 3.4).
enum class Pooling { first, mean, last, first_and_mean, attention };

// The head computes output(norm(activation(transform(pool(hidden))))), or with pool_transformed
// output(pool(norm(activation(transform(hidden))))). Without `transform`, it has no activation and
// no norm; pooled has an output layer only with `projection`.
struct HeadSpec {
  HeadKind kind = HeadKind::language_model;
  bool tied = true;        // language_model: share the output matrix with the token embedding
  int64_t labels = 0;      // sequence, token, span: number of outputs
  int64_t projection = 0;  // pooled: width of the output; 0 = the model's, without an output layer
  bool bias = false;       // of the output layer
  // sequence, images: the mean with the outputs of a second layer for the distillation token.
  bool distilled = false;
  bool transform = false;  // an additional layer before the output layer
  Activation activation = Activation::gelu;
  bool transform_bias = true, transform_norm = false;
  // language_model: outputs of the additional layer; 0 = the width of the embeddings.
  int64_t transform_width = 0;
  Pooling pooling = Pooling::first;  // pooled, sequence
  // sequence: compute the additional layer for each token, and pool its outputs.
  bool pool_transformed = false;
  bool scaled = false;  // multiply hidden states by width^-1/2 (Raffel et al. 2020)
  float scale = 1;      // language_model: factor of the logits, before the cap
  float softcap = 0;    // logits z become softcap * tanh(z / softcap); 0 = off
};

// Dropout probabilities in training.
struct DropoutSpec {
  float embedding = 0, attention = 0, residual = 0;
};

// The architecture of a model as plain data. validated() refuses illegal combinations and names the
// field.
struct Spec {
  int64_t vocabulary = 0;  // 0 = the tokenizer's size
  // Size of a separate encoder embedding in an encoder-decoder; 0 = shared.
  int64_t source_vocabulary = 0;
  int64_t context = 0;  // maximum tokens in one sequence
  int64_t width = 0;
  // Width of the embeddings of tokens, types and positions, if a matrix maps them to `width` (Lan
  // et al. 2020, 3.1); 0 = width. A language-model head then maps hidden states back to it.
  int64_t embedding_width = 0;
  int64_t padding = -1;           // padding token, whose embedding gets no gradient; -1 = none
  int64_t token_types = 0;        // size of the segment (sentence) embedding; 0 = none
  bool scaled_embedding = false;  // multiply token embeddings by sqrt(width)
  float embedding_scale = 1;      // another factor of token embeddings
  InputSpec input;                // of the encoder
  // The stacks: one, or both for an encoder-decoder.
  std::optional<StackSpec> encoder;                // bidirectional
  std::optional<StackSpec> decoder = StackSpec();  // causal
  HeadSpec head;
  DropoutSpec dropout;
  // Standard deviation of the normal distribution of initial weights. For projections into the
  // residual stream, it is divided by sqrt(2 * layers) (Radford et al. 2019), unless the stack has
  // an init_scale.
  float init_deviation = 0.02f;
};

// Visits every field (fovea/core/options.h). The fields of the decoder and those outside the stacks
// have short names ("layers"); the names of the encoder's fields begin with "encoder_".
void visit(Spec& spec, OptionVisitor& visitor);

std::vector<std::string> preset_names();
// Returns the preset `name`. Throws InvalidArgument, with the nearest name, if it is unknown.
Spec preset(const std::string& name);

// Reads a Spec from JSON; missing keys keep their defaults. `name` is the file name in errors.
// Throws BadFile if the text is not valid JSON; throws InvalidArgument, with the file and the key,
// if a key is unknown or a value is out of range.
Spec read_spec(const std::string& json, const std::string& name);
std::string write_spec(const Spec& spec);  // indented JSON

// Reads the Spec from config.json in a model directory (for an adapter, of its base), or from a
// .gguf file. The weights of a directory are not needed. Throws BadFile if the file is damaged, and
// Unsupported if its model_type is not known.
Spec read_model_spec(const std::string& folder);

// Returns the Spec with derived defaults in place of fields that are 0. Throws InvalidArgument,
// with the field, its value and the allowed range, if a field or a combination is invalid.
Spec validated(Spec spec);

}  // namespace fovea::model
