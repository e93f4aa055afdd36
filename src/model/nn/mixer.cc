#include "nn/mixer.h"

namespace fovea::model {

Mixer make_mixer(const StackSpec& stack, int64_t width, int64_t layer, const Dropout& weights) {
  switch (mixer_of(stack, layer)) {
    case MixerKind::attention: return Attention(stack, width, layer, false, weights);
    case MixerKind::latent: return LatentAttention(stack, width, layer, weights);
    case MixerKind::rnn:
    case MixerKind::gru:
    case MixerKind::lstm: break;
  }
  return Recurrence(stack, width, layer);
}

}  // namespace fovea::model
