#pragma once

#include "fovea/spec.h"
#include "nn/head.h"
#include "nn/input.h"
#include "nn/stack.h"

namespace fovea {

// What a stack reads: token ids, or for an encoder of images or audio `signal`.
struct Sequence {
  Tensor ids;     // i32 [B, T]
  Tensor places;  // i32 [B, T], or absent: 0, 1, ... from the cache's length on
  Tensor types;   // i32 [B, T], or absent: all 0; models with token types
  Tensor signal;  // f32, as Input takes it
};

// The one Transformer: embeddings, an encoder, a decoder or both, and a head, as the Spec says.
struct Transformer {
  Spec spec;
  Parameter token_embedding, source_embedding, type_embedding;
  Input input;
  Stack encoder, decoder;  // without blocks where the Spec has none
  Head head;

  Transformer() = default;
  explicit Transformer(const Spec& validated);

  // -> [B, S, C] in pass.compute
  Tensor encode(const Sequence& source, const Pass& pass) const;
  // pass.memory is what encode() gave, where there is an encoder. -> [B, T, C] in pass.compute
  Tensor decode(const Sequence& tokens, const Pass& pass) const;
  // Gives the texts of pass.cache what their cross-attention needs: memory [B, S, C], a row for
  // each text, of which pass.memory_valid is no padding.
  void remember(const Tensor& memory, const Pass& pass) const;
  // The one stack of a model that has one: its decoder, else its encoder.
  Tensor hidden(const Tensor& ids, const Pass& pass, const Tensor& places = {}) const;
  // [..., C] -> what the head gives, f32 (f64 of f64)
  Tensor logits(const Tensor& hidden, const std::vector<Interval>& valid = {}) const;

  // f(name, parameter) for each parameter, in a fixed order: load, save, init, count and the
  // optimiser are visits.
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

  // The head's name says its kind, so that a checkpoint's tensors cannot be taken for another's.
  const char* head_name() const;

 private:
  Tensor embed(const Sequence& sequence, const Parameter& table) const;
};

void initialise(Transformer& model, uint64_t seed);
int64_t parameter_count(Transformer& model);  // tied weights once
// In the order of each(). The pointers are valid as long as the model is neither moved nor
// assigned.
std::vector<NamedParameter> parameters_of(Transformer& model);

}  // namespace fovea
