#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea {

// Whose attention: of the tokens to one another (in the decoder where there are two stacks), of an
// encoder beside a decoder, or of the decoder's tokens to the encoder's.
enum class Look { self, encoder, cross };

struct HeadPlace {
  Look look = Look::self;
  int64_t layer = 0, head = 0;
  bool operator==(const HeadPlace&) const = default;
};

struct InspectInput {
  // One of these two: what the model reads; an encoder, if there is one.
  std::string text;
  std::vector<int32_t> ids;
  // What a decoder behind an encoder says; neither = what it finds likeliest, token by token.
  std::string target;
  std::vector<int32_t> target_ids;

  bool special_tokens = true;      // of `text`: what the tokenizer puts around it
  std::vector<HeadPlace> muted{};  // heads that are switched off: they give zeros
};

// A text is refused beyond this many bytes, tokens beyond the model's context.
constexpr size_t kInspectedBytes = size_t{1} << 18;

struct InspectedToken {
  int32_t id = 0;
  std::string text;  // of the text itself where the token covers whole characters
  bool special = false;
};

// A piece of attention maps. Letters: N heads asked for (1 for their mean), R query rows, S keys.
struct MapQuery {
  Look look = Look::self;
  int64_t layer = 0;
  std::vector<int64_t> heads{0};
  bool mean = false;                    // of the heads
  int64_t first_row = 0, end_row = -1;  // -1 = all
  int64_t first_key = 0, end_key = -1;
  int64_t step = 1;  // the largest weight of each square of step x step
};
struct Map {
  int64_t heads = 0, rows = 0, keys = 0;
  std::vector<float> weights;  // [heads, rows, keys]
};

// The strongest keys of one query row, descending.
struct Looked {
  int32_t key = 0;
  float weight = 0;
};

// Of what a head does on this text, means over the queries; each is a share of the weight, 0 to 1.
struct HeadScores {
  double previous = 0, next = 0;  // on the token before, on the one after
  double itself = 0, first = 0;   // on the query's own token, on the text's first one
  double same = 0;                // on other tokens of the same id
  double punctuation = 0;         // on tokens without letters or digits
  double diffuse = 0;             // entropy / log of the number of keys seen: 1 = looks everywhere
  double distance = 0;            // mean number of tokens between query and key
};

// How sure the model was of a token: of the one at that place, given those before it (an encoder:
// given all, itself included).
struct Surprise {
  int32_t id = 0, likeliest = 0;
  double probability = 0, entropy = 0;  // of the token; of the distribution, in nats
  double likeliest_probability = 0;
  int64_t rank = 0;  // 0 = the likeliest
};

struct Guess {
  int32_t id = 0;
  float probability = 0;
};

// One step on a token's way through the model, with the numbers of this token. `name` says what it
// is: docs/inspect.md lists them.
struct Step {
  std::string name;
  std::vector<int64_t> shape;  // of the whole, such as [T, C]
  std::vector<float> values;   // this token's, the first few
  int64_t size = 0;            // how many there are
  float root_mean_square = 0;  // of all of them
  std::vector<int32_t> ids{};  // of scores: the keys; of logits: tokens; of experts: which
};
struct WalkQuery {
  Look look = Look::self;  // self or encoder: the stack
  int64_t token = 0, layer = 0, head = 0;
  int64_t values = 8;  // how many numbers of each vector
};

struct Routed {
  int32_t expert = 0;
  float weight = 0;
};

// What flows through a layer, and what attention does there, as means over tokens.
struct LayerSizes {
  float stream = 0;            // root mean square of the residual stream as it enters
  float gradient = 0;          // root of the summed squares of the layer's gradients; 0 = not asked
  std::vector<float> entropy;  // of each head, / log of the number of keys seen: see HeadScores
};

// What a model computed of one text, kept so that all questions about it are quick. Attention
// weights are made for the rows and heads that are asked for, and are those of `fovea trace`. Calls
// from several threads wait for one another.
class Inspector {
 public:
  // InvalidArgument for tokens beyond the model's context or vocabulary, an empty or too long text,
  // a head that is not there; Unsupported for models that read images or sound.
  Inspector(const Model& model, const InspectInput& input);
  ~Inspector();
  Inspector(Inspector&&) noexcept;

  const std::vector<InspectedToken>& tokens() const;  // Look::self
  const std::vector<InspectedToken>& source() const;  // Look::encoder; empty without

  Map map(const MapQuery& query) const;
  // The `count` strongest keys of every row of the heads' mean.
  std::vector<std::vector<Looked>> strongest(const MapQuery& query, int64_t count) const;
  std::vector<HeadScores> head_scores(Look look, int64_t layer) const;  // by head

  // What the head gives at a place: logits of the vocabulary, or of labels.
  std::vector<float> logits(int64_t place) const;
  // Layer by layer what the head would make of the residual stream there: [layers + 1][places].
  std::vector<std::vector<Guess>> lens(int64_t first, int64_t end) const;
  // Of each token but the first; empty where the head is no language model.
  std::vector<Surprise> surprise() const;
  double loss() const;  // mean of -log probability in it; nats

  std::vector<Step> walk(const WalkQuery& query) const;
  // The experts that each token goes through in a layer, by weight; empty in a layer without.
  std::vector<std::vector<Routed>> routing(Look look, int64_t layer) const;
  std::vector<LayerSizes> sizes(Look look, bool gradients) const;  // by layer

  // A .safetensors file with the names of `fovea trace`: input_ids, hidden.*, and the attention of
  // one layer [1, H, T, S].
  void save(const std::string& path, Look look, int64_t layer) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// As the page shows ids that no text was written with. InvalidArgument for those outside the
// vocabulary.
std::vector<InspectedToken> token_texts(const Model& model, const std::vector<int32_t>& ids);

// Induction (Olsson et al. 2022): how much each head looks, from a token seen before, at what
// followed it then, on random tokens that are repeated once. [layers][heads] of Look::self.
std::vector<std::vector<double>> induction_scores(const Model& model, uint64_t seed = 0);

// Training seen from outside: the steps of the snapshots in a directory that `fovea train` writes
// to, ascending (empty for other directories), and the model as it was at one of them.
std::vector<int64_t> snapshots(const std::string& folder);
Model open_snapshot(const std::string& folder, int64_t step);

}  // namespace fovea
