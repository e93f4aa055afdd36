#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cache/kv_cache.h"
#include "ops/ops.h"

namespace fovea {

// What an attention layer has in hand: q [B, T, H, D], k and v [B, S, G, D], how they meet, and
// what each head gives [B, T, H, D].
struct Attending {
  const Tensor &q, &k, &v;
  const AttentionOptions& options;
  const Tensor& heads;
};

// Where inspection looks in. Null by default; the fast path owes it nothing.
struct Probe {
  std::function<void(const std::string& name, const Tensor& value)> see;
  // Attention weights are computed on request only.
  std::function<bool(const std::string& name)> wants_weights = {};
  // Before the heads are joined; it may overwrite them, to switch heads off.
  std::function<void(const std::string& name, const Attending& attending)> attend = {};
  // Of a decoder's self-attention with a cache: q [rows, H, D], and where the keys are.
  std::function<void(int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
                     const PagedOptions& options)>
      attend_paged = {};
};

// By what queries and keys are turned: cos and sin f32 [T or B*T, R/2]; absent = they are not.
struct Angles {
  Tensor cosines, sines;
};

// What one forward pass carries through the layers.
struct Pass {
  DType compute = DType::f32;  // of the matrix products; the residual stream stays f32
  Mask mask;                   // of the self-attention
  KvCache* cache = nullptr;    // decoding: keys and values of earlier passes
  const Probe* probe = nullptr;
  Dropout dropout;  // seed and step of this pass; probability 0 = not training
  bool training = false;

  // What an encoder made, for a decoder's cross-attention: [B, S, C] in `compute`, and per batch
  // row the part of it that is no padding (empty = all).
  Tensor memory;
  std::vector<Interval> memory_valid;
  // Receives the losses that layers want added to the model's, if it is there.
  std::vector<Tensor>* side_losses = nullptr;

  // Set by the stack for its layers.
  Angles angles, local_angles;  // the second in layers with a window
  Pairing pairing = Pairing::halves;
  Tensor distance_bias;  // see AttentionOptions; with a cache, PagedOptions
  int64_t bias_zero = 0;
  const char* stack = "";  // in the names that a probe sees: "", "encoder_" or "decoder_"

  // The dropout of one place in the model.
  Dropout drop(float probability, uint32_t place) const {
    Dropout here = dropout;
    here.probability = training ? probability : 0;
    here.substream = place;
    return here;
  }
};

// Places of dropout: of each stack, 0 is the embedding's, and each layer has three, of its
// attention weights and of its two sublayers; cross-attention's two have a range of their own.
enum class Sublayer : uint32_t { attention_weights, attention, ffn };
inline uint32_t place_of_dropout(uint32_t first_place, int64_t layer, Sublayer which) {
  return first_place + 1 + 3 * static_cast<uint32_t>(layer) + static_cast<uint32_t>(which);
}
constexpr uint32_t kDecoderPlaces = 0, kCrossPlaces = 1 << 16, kEncoderPlaces = 2 << 16;

// Shows a value under a name, which is put together only where somebody looks.
template <class... Arguments>
void probe(const Pass& pass, const Tensor& value, fmt::format_string<Arguments...> name,
           Arguments&&... arguments) {
  if (pass.probe == nullptr || !pass.probe->see) return;
  pass.probe->see(pass.stack + fmt::format(name, std::forward<Arguments>(arguments)...), value);
}

}  // namespace fovea
