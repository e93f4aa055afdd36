#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/core/array.h"
#include "fovea/model/model.h"

namespace fovea::study {

// A neuron of the feed-forward layer of a stack; `kind` is self or encoder.
struct NeuronIndex {
  model::AttentionKind kind = model::AttentionKind::self;
  int64_t layer = 0, neuron = 0;
};

struct InspectInput {
  // The input, as `text` or as `ids`; in an encoder-decoder, the encoder's input.
  std::string text;
  std::vector<int32_t> ids;
  // The output of an encoder-decoder, as text or as ids. If both are empty, the model's greedy
  // output of at most 64 tokens is used.
  std::string target;
  std::vector<int32_t> target_ids;

  bool special_tokens = true;  // add the tokenizer's special tokens around `text`
  bool parse_special = false;  // read names of special tokens in the texts as special tokens
  std::vector<model::HeadIndex> muted{};     // heads whose output is set to zero
  std::vector<NeuronIndex> muted_neurons{};  // neurons whose activation is set to zero
};
void visit(InspectInput& input, OptionVisitor& visitor);

// The maximum size of an input text in bytes. The model's context limits its tokens.
constexpr size_t kInspectedBytes = size_t{1} << 18;

struct InspectedToken {
  int32_t id = 0;
  std::string text;  // as in the input if the token covers complete characters, else as decoded
  bool special = false;
};

// Selects attention weights.
struct MapQuery {
  model::AttentionKind kind = model::AttentionKind::self;
  int64_t layer = 0;
  std::vector<int64_t> heads{0};
  bool mean = false;  // return the mean of `heads` as one map
  // Query rows [first_row, end_row) and keys [first_key, end_key); an end of -1 = all that follow.
  int64_t first_row = 0, end_row = -1;
  int64_t first_key = 0, end_key = -1;
  int64_t step = 1;  // return only the largest weight of each square of step x step weights
};
struct AttentionWeights {
  int64_t heads = 0, rows = 0, keys = 0;
  std::vector<float> weights;  // [heads, rows, keys]; heads = 1 for the mean

  ArrayView view() const { return {weights.data(), {heads, rows, keys}, DType::f32}; }
};

// The index of a key, and the attention weight that a query gives it.
struct KeyWeight {
  int32_t key = 0;
  float weight = 0;
};

// Statistics of a head on this text, as means over the queries. All but `diffuse` and `distance`
// are fractions of the attention weight.
struct HeadScores {
  double previous = 0, next = 0;  // on the preceding token, on the following token
  double itself = 0, first = 0;   // on the query's own token, on the first token of the text
  double same = 0;                // on other tokens with the same id
  double punctuation = 0;         // on tokens of ASCII punctuation
  double diffuse = 0;   // entropy / log of the number of visible keys; 1 = uniform attention
  double distance = 0;  // distance between query and key in tokens, weighted by the attention
};

// How well the model predicts a token, given the tokens before it. An encoder sees all tokens,
// including this one.
struct Surprise {
  int32_t id = 0, likeliest = 0;
  double probability = 0;  // of the token
  double entropy = 0;      // of the distribution, in nats
  double likeliest_probability = 0;
  int64_t rank = 0;  // number of more likely tokens
};

struct LikelyToken {
  int32_t id = 0;
  float probability = 0;
};

// One intermediate result for a token. docs/inspect.md lists the values of `name`.
struct WalkStep {
  std::string name;
  std::vector<int64_t> shape;  // shape of the complete tensor, such as [T, C]
  std::vector<float> values;   // the first, or for scores, weights and logits, selected elements
  int64_t size = 0;            // number of elements in this token's row
  float root_mean_square = 0;  // of the complete row
  // The keys of scores and weights, the tokens of logits and probabilities, the experts, or the id
  // of an embedding.
  std::vector<int32_t> ids{};
};
struct WalkQuery {
  model::AttentionKind kind = model::AttentionKind::self;  // self or encoder: selects the stack
  int64_t token = 0, layer = 0, head = 0;
  int64_t values = 8;  // maximum elements to return of each row; twice this number of scores
};

struct Routed {
  int32_t expert = 0;
  float weight = 0;
};

// Magnitudes in a layer, and the entropy of its attention.
struct LayerSizes {
  float stream = 0;    // root mean square of the residual stream at the layer's input
  float gradient = 0;  // norm of the layer's gradients; 0 = not computed
  // HeadScores::diffuse of each head; empty in recurrent layers.
  std::vector<float> entropy;
};

// The intermediate results of a model on one text, kept so that later queries are fast. Attention
// weights are computed on demand for the selected rows and heads, and equal those of `fovea trace`.
// Keeps a copy of the model. Safe to use from several threads; the calls run one at a time. Throws
// InvalidArgument if a query names a layer, head or token that does not exist.
class Inspection {
 public:
  // Runs the model. Throws InvalidArgument if the text is empty or too long, if its tokens exceed
  // the model's context or vocabulary, or if a muted head or neuron does not exist. Throws
  // Unsupported for models that read images or audio.
  Inspection(const model::Model& model, const InspectInput& input);
  ~Inspection();
  Inspection(Inspection&&) noexcept;

  // The tokens; valid as long as this object exists.
  const std::vector<InspectedToken>& tokens() const;  // of AttentionKind::self
  const std::vector<InspectedToken>& source()
      const;  // of AttentionKind::encoder; empty for one stack

  AttentionWeights map(const MapQuery& query) const;
  // Returns at most `count` keys of each query row: those with the largest mean weight over
  // `query.heads`.
  std::vector<std::vector<KeyWeight>> strongest(const MapQuery& query, int64_t count) const;
  std::vector<HeadScores> head_scores(model::AttentionKind kind,
                                      int64_t layer) const;  // one entry per head
  // Attention rollout (Abnar and Zuidema 2020, 3.1): the row `token` of the product over the
  // layers, from the last to the first, of 0.5 A + 0.5 I, where A is the mean of the heads'
  // weights. Throws InvalidArgument if a layer is recurrent or `kind` is cross.
  std::vector<float> rollout(model::AttentionKind kind, int64_t token) const;

  // Returns the output of the model's head at a position: logits of the vocabulary or of the
  // labels. A head with one output per sequence ignores `position`.
  std::vector<float> logits(int64_t position) const;
  // Logit lens: applies the final norm and the model's head to the residual stream before the first
  // and after each layer, at the positions [first, end), at most 64 of them. Returns the most
  // likely tokens, [layers + 1][end - first]. Throws InvalidArgument if the head is not a language
  // model.
  std::vector<std::vector<LikelyToken>> lens(int64_t first, int64_t end) const;
  // Returns one entry per predicted token; empty if the head is not a language model.
  std::vector<Surprise> surprise() const;
  double loss() const;  // mean negative log-likelihood over surprise(), in nats

  // Returns the intermediate results for one token, in the order of the computation.
  std::vector<WalkStep> walk(const WalkQuery& query) const;
  // Returns all vectors of one token, [layers + 2][C]: the residual stream before each layer and
  // after the last one, and the output of the stack, after its final norm.
  std::vector<std::vector<float>> vectors(model::AttentionKind kind, int64_t token) const;
  // Returns the experts selected for each token, by descending weight; empty in a layer without
  // experts.
  std::vector<std::vector<Routed>> routing(model::AttentionKind kind, int64_t layer) const;
  // Returns one entry per layer. Gradients are those of the loss of a decoder-only language model.
  std::vector<LayerSizes> sizes(model::AttentionKind kind, bool gradients) const;

  // Writes input_ids, hidden.*, and the attention weights of one layer [1, H, T, S] to a
  // .safetensors file, under the names of `fovea trace`.
  void save(const std::string& path, model::AttentionKind kind, int64_t layer) const;

  struct State;  // internals, for the library only
  explicit Inspection(std::unique_ptr<State> state);
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Returns the tokens of ids, with texts to display. Throws InvalidArgument if an id is outside the
// vocabulary.
std::vector<InspectedToken> token_texts(const model::Model& model, const std::vector<int32_t>& ids);

// Returns the induction scores of AttentionKind::self, [layers][heads] (Olsson et al. 2022): the
// mean attention weight from a repeated token to the token after its first occurrence, on a
// sequence of random tokens that is repeated once. The list of a recurrent layer is empty.
std::vector<std::vector<double>> induction_scores(const model::Model& model, uint64_t seed = 0);

}  // namespace fovea::study
