#pragma once

#include "fovea/spec.h"
#include "nn/stack.h"

namespace fovea {

// The one Transformer: embeddings, stack, head, as the Spec says.
struct Transformer {
  Spec spec;
  Parameter token_embedding, position_embedding;
  Stack decoder;
  Linear head;  // absent if tied to the token embedding

  Transformer() = default;
  explicit Transformer(const Spec& validated);

  // ids i32 [B, T]; positions i32 [B, T], or absent: 0, 1, ... from the cache's length on.
  // -> [B, T, C] in pass.compute
  Tensor hidden(const Tensor& ids, const Pass& pass, const Tensor& positions = {}) const;
  Tensor logits(const Tensor& hidden) const;  // [..., C] -> f32 [..., V] (f64 of f64)

  // f(name, parameter) for each parameter, in a fixed order: load, save, init, count and the
  // optimiser are visits.
  template <class Visitor>
  void each(Visitor&& f) {
    visit(f, "embedding.token", token_embedding);
    visit(f, "embedding.position", position_embedding);
    decoder.each(f, "decoder");
    head.each(f, "head");
  }
};

void initialise(Transformer& model, uint64_t seed);
int64_t parameter_count(Transformer& model);  // tied weights once

}  // namespace fovea
