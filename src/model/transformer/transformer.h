#pragma once

#include "fovea/model/spec.h"
#include "nn/head.h"
#include "nn/input.h"
#include "nn/stack.h"

namespace fovea::model {

// The input of a stack: token ids, or `signal` for an encoder of images or audio.
struct Sequence {
  Tensor ids;        // i32 [B, T]
  Tensor positions;  // i32 [B, T]; empty = consecutive, from the cache's length or 0
  Tensor types;      // i32 [B, T]; empty = all 0; for models with token types
  Tensor signal;     // f32, in the shape that Input expects
  // Vectors instead of the embeddings of some tokens of a decoder, such as those of images, and
  // the rows of the ids, as [B * T], that they replace.
  Tensor vectors = {};      // f32 [N, C]
  Tensor vector_rows = {};  // i32 [N]
};

// Returns the width of the embeddings.
inline int64_t embedding_width_of(const Spec& spec) {
  return spec.embedding_width > 0 ? spec.embedding_width : spec.width;
}

// The Transformer of all models: embeddings, an encoder, a decoder or both, and a head, as in the
// Spec.
struct Transformer {
  Spec spec;
  Parameter token_embedding, source_embedding, type_embedding;
  Input input;
  Stack encoder, decoder;  // without blocks if the Spec has no such stack
  Head head;

  Transformer() = default;
  explicit Transformer(const Spec& validated);

  // Returns the encoder's output: [B, S, C] in pass.compute.
  Tensor encode(const Sequence& source, const Pass& pass) const;
  // Returns the decoder's output: [B, T, C] in pass.compute. If there is an encoder, pass.memory
  // must be the result of encode(), unless pass.cache has its keys and values (see remember()).
  Tensor decode(const Sequence& tokens, const Pass& pass) const;
  // Stores the keys and values of cross-attention in pass.cache. `memory` [B, S, C] has a row for
  // each text of the cache; pass.memory_valid marks the tokens that are not padding.
  void remember(const Tensor& memory, const Pass& pass) const;
  // Runs the decoder, or the encoder if there is no decoder.
  Tensor hidden(const Tensor& ids, const Pass& pass, const Tensor& positions = {}) const;
  // Returns the tokens of each row of `ids` [B, T] that the head reads: `valid` (empty: all), but a
  // decoder's head for a text reads the last token that is not Spec::padding, wherever padding is
  // the token that ends texts. A text of padding only counts as its first token.
  std::vector<Interval> read_by_head(const Tensor& ids, std::vector<Interval> valid) const;
  // Returns the head's output for hidden states [..., C]: f32 (f64 if they are f64).
  Tensor logits(const Tensor& hidden, const std::vector<Interval>& valid = {}) const;
  // Returns cross_entropy(logits(hidden, valid), labels, options), without storing large logits.
  Tensor loss(const Tensor& hidden, const std::vector<Interval>& valid, const Tensor& labels,
              const LossOptions& options = {}) const;
  // Returns log_probability(logits(hidden), labels) of a language model, without storing large
  // logits: of the shape of the labels.
  Tensor log_probabilities(const Tensor& hidden, const Tensor& labels) const;

  // Calls f(name, parameter) for each parameter, in a fixed order. Loading, saving, initialising,
  // counting and optimising use this function.
  template <class Visitor>
  void each(Visitor&& f) {
    visit(f, "embedding.token", token_embedding);
    visit(f, "embedding.source", source_embedding);
    visit(f, "embedding.type", type_embedding);
    input.each(f, "input");
    encoder.each(f, "encoder");
    decoder.each(f, "decoder");
    head.each(f, head_name());
  }

  // Returns the prefix of the names of the head's parameters. It depends on the kind of head, so
  // that the tensors of one kind cannot be loaded into a head of a different kind.
  const char* head_name() const;

 private:
  Tensor embed(const Sequence& sequence, const Parameter& table) const;
};

// What decides a parameter's initial values, beside its role, its name and its number.
struct Initial {
  const StackSpec* stack = nullptr;  // null: the parameter is outside the stacks
  NormSpec norm = {};
  float deviation = 0.02f;  // see Spec::init_deviation
  uint64_t seed = 0;
};
// Matrices and embeddings are normally distributed. Each number has its own random numbers.
void initialise(Parameter& parameter, const std::string& name, uint32_t number, const Initial& how);
void initialise(Transformer& model, uint64_t seed);
// Returns what the decoder of an encoder-decoder reads if it reads the encoder's text too: the text
// moved by one position after the token `start` (Lewis et al. 2020, 3.2).   i32 [B, T] -> i32 [B,
// T]
Tensor moved_by_one(const Tensor& ids, int32_t start);
// Moves the parameters to a device. Call it before an optimiser requests their gradients.
void move_to(const Device& device, Transformer& model);
int64_t parameter_count(Transformer& model);  // counts tied weights once
// Returns the parameters in the order of each(). The pointers are valid until the model is
// moved, assigned or destroyed.
std::vector<NamedParameter> parameters_of(Transformer& model);

}  // namespace fovea::model
