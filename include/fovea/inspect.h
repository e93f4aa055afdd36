#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

// Which attention: self-attention (of the decoder if there are two stacks), self-attention of the
// encoder of an encoder-decoder, or cross-attention from the decoder to the encoder.
enum class Look { self, encoder, cross };

struct HeadPlace {
  Look look = Look::self;
  int64_t layer = 0, head = 0;
  bool operator==(const HeadPlace&) const = default;
};

struct InspectInput {
  // The input, as `text` or as `ids`. In an encoder-decoder, the encoder's input.
  std::string text;
  std::vector<int32_t> ids;
  // The output of an encoder-decoder. If `target` and `target_ids` are empty, the model's greedy
  // output.
  std::string target;
  std::vector<int32_t> target_ids;

  bool special_tokens = true;      // add the tokenizer's special tokens around `text`
  std::vector<HeadPlace> muted{};  // heads whose output is set to zero
};

// The longest accepted text, in bytes. Tokens are limited by the model's context.
constexpr size_t kInspectedBytes = size_t{1} << 18;

struct InspectedToken {
  int32_t id = 0;
  std::string text;  // as in the input if the token covers complete characters
  bool special = false;
};

// Selects a part of the attention maps.
struct MapQuery {
  Look look = Look::self;
  int64_t layer = 0;
  std::vector<int64_t> heads{0};
  bool mean = false;                    // return the mean of `heads` as one map
  int64_t first_row = 0, end_row = -1;  // query rows; -1 = to the last
  int64_t first_key = 0, end_key = -1;
  int64_t step = 1;  // downsample: the largest weight of each square of step x step
};
struct Map {
  int64_t heads = 0, rows = 0, keys = 0;
  std::vector<float> weights;  // [heads, rows, keys]; heads = 1 for the mean
};

// One of the strongest keys of a query row.
struct Looked {
  int32_t key = 0;
  float weight = 0;
};

// Statistics of a head on this text: fractions of the attention weight, as means over the queries.
struct HeadScores {
  double previous = 0, next = 0;  // on the preceding token, on the following token
  double itself = 0, first = 0;   // on the query's own token, on the first token of the text
  double same = 0;                // on other tokens with the same id
  double punctuation = 0;         // on tokens without letters or digits
  double diffuse = 0;   // entropy / log of the number of visible keys; 1 = uniform attention
  double distance = 0;  // mean distance between query and key, in tokens
};

// How well the model predicts the token at a position, given the tokens before it. An encoder sees
// all tokens, including this one.
struct Surprise {
  int32_t id = 0, likeliest = 0;
  double probability = 0, entropy = 0;  // of the token; of the distribution, in nats
  double likeliest_probability = 0;
  int64_t rank = 0;  // 0 = the most likely token
};

struct Guess {
  int32_t id = 0;
  float probability = 0;
};

// One intermediate result for a token. docs/inspect.md lists the values of `name`.
struct Step {
  std::string name;
  std::vector<int64_t> shape;  // shape of the complete tensor, such as [T, C]
  std::vector<float> values;   // the first elements of this token's row
  int64_t size = 0;            // number of elements in the row
  float root_mean_square = 0;  // of the complete row
  // what the values belong to: keys of scores, tokens of logits, experts
  std::vector<int32_t> ids{};
};
struct WalkQuery {
  Look look = Look::self;  // self or encoder: selects the stack
  int64_t token = 0, layer = 0, head = 0;
  int64_t values = 8;  // maximum elements to return of each row
};

struct Routed {
  int32_t expert = 0;
  float weight = 0;
};

// Magnitudes in a layer, and the entropy of its attention, as means over tokens.
struct LayerSizes {
  float stream = 0;    // root mean square of the residual stream at the layer's input
  float gradient = 0;  // norm of the layer's gradients; 0 = not requested
  // entropy of each head / log of the number of visible keys, as in HeadScores::diffuse
  std::vector<float> entropy;
};

// The intermediate results of a model on one text, kept so that later queries are fast. Attention
// weights are computed on demand for the selected rows and heads, and equal those of `fovea trace`.
// Calls from several threads run one at a time.
class Inspector {
 public:
  // Throws InvalidArgument if the text is empty or too long, if tokens exceed the model's context
  // or vocabulary, or if a muted head does not exist. Throws Unsupported for models that read
  // images or audio.
  Inspector(const Model& model, const InspectInput& input);
  ~Inspector();
  Inspector(Inspector&&) noexcept;

  const std::vector<InspectedToken>& tokens() const;  // Look::self
  const std::vector<InspectedToken>& source() const;  // Look::encoder; empty without an encoder

  Map map(const MapQuery& query) const;
  // Returns the `count` strongest keys of each row, by the mean over the heads.
  std::vector<std::vector<Looked>> strongest(const MapQuery& query, int64_t count) const;
  std::vector<HeadScores> head_scores(Look look, int64_t layer) const;  // one entry per head

  // Returns the head's output at a position: logits of the vocabulary or of the labels.
  std::vector<float> logits(int64_t position) const;
  // Logit lens: applies the head to the residual stream after each layer.
  // -> [layers + 1][positions]
  std::vector<std::vector<Guess>> lens(int64_t first, int64_t end) const;
  // Returns one entry per predicted token; none if the head is not a language model.
  std::vector<Surprise> surprise() const;
  double loss() const;  // mean negative log-likelihood over surprise(), in nats

  std::vector<Step> walk(const WalkQuery& query) const;
  // Returns the experts selected for each token, by descending weight; empty in a layer without
  // experts.
  std::vector<std::vector<Routed>> routing(Look look, int64_t layer) const;
  std::vector<LayerSizes> sizes(Look look, bool gradients) const;  // one entry per layer

  // Writes a .safetensors file with the tensor names of `fovea trace`: input_ids, hidden.*, and the
  // attention of one layer [1, H, T, S].
  void save(const std::string& path, Look look, int64_t layer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Returns the displayed text of ids that do not come from a text. Throws InvalidArgument if an id
// is outside the vocabulary.
std::vector<InspectedToken> token_texts(const Model& model, const std::vector<int32_t>& ids);

// Returns induction scores (Olsson et al. 2022): the mean attention weight from a repeated token to
// the token after its first occurrence, on random tokens that are repeated once; [layers][heads] of
// Look::self.
std::vector<std::vector<double>> induction_scores(const Model& model, uint64_t seed = 0);

// Return the steps of the snapshots of a training run, ascending (empty if `folder` is not the
// output directory of `fovea train`), and the model of one snapshot.
std::vector<int64_t> snapshots(const std::string& folder);
Model open_snapshot(const std::string& folder, int64_t step);

}  // namespace fovea
