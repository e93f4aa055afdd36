#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cache/kv_cache.h"
#include "ops/ops.h"

namespace fovea {

// Inputs and output of one attention call: q [B, T, H, D], k and v [B, S, G, D], the options, and
// the output of each head [B, T, H, D].
struct AttentionInputs {
  const Tensor &q, &k, &v;
  const AttentionOptions& options;
  const Tensor& heads;
};

// Callbacks for inspection; a null callback is not called.
struct Probe {
  // Receives intermediate results.
  std::function<void(const std::string& name, const Tensor& value)> see;
  // Returns whether to compute attention weights for this name.
  std::function<bool(const std::string& name)> wants_weights = {};
  // Called before the output projection of attention; may overwrite `heads`, for example to switch
  // heads off.
  std::function<void(const std::string& name, const AttentionInputs& inputs)> attend = {};
  // Called for a decoder's self-attention with a cache: q [B, T, H, D], and the pages of the texts.
  std::function<void(int64_t layer, const Tensor& q, const std::vector<PagedText>& texts,
                     const PagedOptions& options)>
      attend_paged = {};
};

// The rotation angles of queries and keys: cos and sin f32 [T or B*T, R/2]; empty = no rotation.
struct Angles {
  Tensor cosines, sines;
};

// The state that one forward pass carries through the layers.
struct Pass {
  DType compute = DType::f32;  // dtype of the matrix products; the residual stream stays f32
  Mask mask;                   // mask of the self-attention
  KvCache* cache = nullptr;    // decoding: keys and values of earlier passes
  const Probe* probe = nullptr;
  Dropout dropout;  // seed, step and units of this pass; dropout_at() sets the rest
  bool training = false;

  // The encoder's output, for a decoder's cross-attention: [B, S, C] in `compute`, and per batch
  // row the interval that is not padding (empty = all).
  Tensor memory;
  std::vector<Interval> memory_valid;
  // Collects the losses that layers add to the model's loss; may be null.
  std::vector<Tensor>* side_losses = nullptr;

  // Set by the stack for its layers.
  Angles angles, local_angles;  // local_angles: for layers with a window
  Pairing pairing = Pairing::halves;
  Tensor distance_bias;  // see AttentionOptions; with a cache, PagedOptions
  int64_t bias_zero = 0;
  const char* stack = "";  // prefix of a probe's names: "", "encoder_" or "decoder_"

  // Returns the dropout of one place in the model.
  Dropout dropout_at(float probability, uint32_t place) const {
    Dropout here = dropout;
    here.probability = training ? probability : 0;
    here.substream = place;
    return here;
  }
};

// Places of dropout. In each stack, the first place is that of the embeddings, followed by three
// places per layer: its attention weights and its two sublayers. The two places per layer of
// cross-attention have a separate range.
enum class Sublayer : uint32_t { attention_weights, attention, ffn };
inline uint32_t place_of_dropout(uint32_t first_place, int64_t layer, Sublayer which) {
  return first_place + 1 + 3 * static_cast<uint32_t>(layer) + static_cast<uint32_t>(which);
}
constexpr uint32_t kDecoderPlaces = 0, kCrossPlaces = 1 << 16, kEncoderPlaces = 2 << 16;

// Passes a value to the probe; the name is formatted only if there is a probe.
template <class... Arguments>
void probe(const Pass& pass, const Tensor& value, fmt::format_string<Arguments...> name,
           Arguments&&... arguments) {
  if (pass.probe == nullptr || !pass.probe->see) return;
  pass.probe->see(pass.stack + fmt::format(name, std::forward<Arguments>(arguments)...), value);
}

}  // namespace fovea
