#pragma once

#include <functional>
#include <string>

#include "nn/kv_cache.h"
#include "ops/ops.h"

namespace fovea {

// Where inspection looks in. Null by default; the fast path owes it nothing.
struct Probe {
  std::function<void(const std::string& name, const Tensor& value)> see;
  // Attention weights are computed on request only.
  std::function<bool(const std::string& name)> wants_weights;
};

// What one forward pass carries through the layers.
struct Pass {
  DType compute = DType::f32;  // of the matrix products; the residual stream stays f32
  Mask mask;                   // of the self-attention
  KvCache* cache = nullptr;    // decoding: keys and values of earlier passes
  const Probe* probe = nullptr;
  Dropout dropout;  // seed and step of this pass; probability 0 = not training
  bool training = false;

  // The dropout of one place in the model.
  Dropout drop(float probability, uint32_t place) const {
    Dropout here = dropout;
    here.probability = training ? probability : 0;
    here.substream = place;
    return here;
  }
};

// Places of dropout: 0 is the embedding's; each layer has three, of its attention weights and of
// its two sublayers.
inline uint32_t place_of_dropout(int64_t layer, int which) {
  return static_cast<uint32_t>(1 + 3 * layer + which);
}

inline void probe(const Pass& pass, const std::string& name, const Tensor& value) {
  if (pass.probe != nullptr && pass.probe->see) pass.probe->see(name, value);
}

}  // namespace fovea
