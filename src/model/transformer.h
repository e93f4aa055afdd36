#pragma once

#include "fovea/spec.h"
#include "nn/head.h"
#include "nn/input.h"
#include "nn/stack.h"

namespace fovea {

// The input of a stack: token ids, or `signal` for an encoder of images or audio.
struct Sequence {
  Tensor ids;     // i32 [B, T]
  Tensor places;  // i32 [B, T]; empty = 0, 1, ... starting at the cache's length
  Tensor types;   // i32 [B, T]; empty = all 0; for models with token types
  Tensor signal;  // f32, as Input takes it
};

// The one Transformer: embeddings, an encoder, a decoder or both, and a head, as in the Spec.
struct Transformer {
  Spec spec;
  Parameter token_embedding, source_embedding, type_embedding;
  Input input;
  Stack encoder, decoder;  // without blocks if the Spec has no such stack
  Head head;

  Transformer() = default;
  explicit Transformer(const Spec& validated);

  // -> [B, S, C] in pass.compute
  Tensor encode(const Sequence& source, const Pass& pass) const;
  // pass.memory is the result of encode(), if there is an encoder. -> [B, T, C] in pass.compute
  Tensor decode(const Sequence& tokens, const Pass& pass) const;
  // Gives the texts of pass.cache the keys and values of cross-attention: memory [B, S, C] has a
  // row for each text; pass.memory_valid marks the tokens that are not padding.
  void remember(const Tensor& memory, const Pass& pass) const;
  // Runs the only stack of a model: its decoder, else its encoder.
  Tensor hidden(const Tensor& ids, const Pass& pass, const Tensor& places = {}) const;
  // [..., C] -> the head's output, f32 (f64 for f64)
  Tensor logits(const Tensor& hidden, const std::vector<Interval>& valid = {}) const;

  // Calls f(name, parameter) for each parameter, in a fixed order: loading, saving, initialising,
  // counting and optimising are visits.
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

  // The head's name contains its kind, so that the tensors of one kind cannot load as another's.
  const char* head_name() const;

 private:
  Tensor embed(const Sequence& sequence, const Parameter& table) const;
};

void initialise(Transformer& model, uint64_t seed);
int64_t parameter_count(Transformer& model);  // counts tied weights once
// Returns the parameters in the order of each(). The pointers are valid as long as the model is
// neither moved nor assigned.
std::vector<NamedParameter> parameters_of(Transformer& model);

}  // namespace fovea
