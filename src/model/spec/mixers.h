#pragma once

#include "fovea/model/spec.h"
#include "kernels/kernels.h"

namespace fovea::model {

// Returns the mixer of a layer.
inline MixerKind mixer_of(const StackSpec& stack, int64_t layer) {
  return stack.mixers.empty() ? MixerKind::attention : stack.mixers[static_cast<size_t>(layer)];
}
// Whether a mixer reads a state that sums up the tokens before, instead of their keys and values.
inline bool is_recurrent(MixerKind mixer) {
  return mixer != MixerKind::attention && mixer != MixerKind::latent;
}
inline bool is_recurrent(const StackSpec& stack, int64_t layer) {
  return is_recurrent(mixer_of(stack, layer));
}

// Returns the window of a layer's attention; 0 = all keys.
inline int64_t window_of(const AttentionSpec& spec, int64_t layer) {
  return spec.windows.empty() ? 0 : spec.windows[static_cast<size_t>(layer)];
}

// Returns the cell of a recurrent mixer.
inline Cell cell_of(MixerKind mixer) {
  if (mixer == MixerKind::rnn) return Cell::rnn;
  return mixer == MixerKind::gru ? Cell::gru : Cell::lstm;
}

}  // namespace fovea::model
