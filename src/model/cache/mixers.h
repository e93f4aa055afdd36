#pragma once

#include "fovea/model/spec.h"
#include "kernels/kernels.h"

namespace fovea::model {

// Returns the mixer of a layer.
inline MixerKind mixer_of(const StackSpec& stack, int64_t layer) {
  return stack.mixers.empty() ? MixerKind::attention : stack.mixers[static_cast<size_t>(layer)];
}
inline bool is_recurrent(const StackSpec& stack, int64_t layer) {
  const MixerKind mixer = mixer_of(stack, layer);
  return mixer != MixerKind::attention && mixer != MixerKind::latent;
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

// Returns the number of elements of a recurrent layer's state; 0 for attention.
inline int64_t state_size(const StackSpec& stack, int64_t layer) {
  return is_recurrent(stack, layer)
             ? states_of(cell_of(mixer_of(stack, layer))) * stack.recurrence.width
             : 0;
}

}  // namespace fovea::model
