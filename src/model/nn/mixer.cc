#include "nn/mixer.h"

#include "spec/mixers.h"

namespace fovea::model {
namespace {

template <class M>
constexpr MixerFacts facts_of() {
  return {M::kName,
          M::kAttends,
          [](const StackSpec& stack, int64_t width, int64_t layer,
             const Dropout& weights) -> Mixer { return M(stack, width, layer, weights); },
          M::cached,
          M::kept_bytes,
          M::flops};
}

constexpr MixerFacts kMixers[] = {
    facts_of<Attention>(),         // attention
    facts_of<Recurrence>(),        // rnn
    facts_of<Recurrence>(),        // gru
    facts_of<Recurrence>(),        // lstm
    facts_of<LatentAttention>(),   // latent
    facts_of<GatedDelta>(),        // gated_delta
    facts_of<GatedConvolution>(),  // convolution
    facts_of<StateSpace>(),        // state_space
};
static_assert(std::size(kMixers) == static_cast<size_t>(MixerKind::state_space) + 1);

}  // namespace

const MixerFacts& mixer_facts(MixerKind kind) { return kMixers[static_cast<size_t>(kind)]; }

std::span<const MixerFacts> all_mixers() { return kMixers; }

PagePool::Layout page_layout(const StackSpec& decoder, DType dtype) {
  const PagePool::Layer memory = Attention::cached(decoder, 0, dtype);
  PagePool::Layout layout{dtype, {}, memory.keys, memory.values};
  for (int64_t layer = 0; layer < decoder.layers; ++layer)
    layout.layers.push_back(mixer_facts(mixer_of(decoder, layer)).cached(decoder, layer, dtype));
  return layout;
}

}  // namespace fovea::model
