#pragma once

// Small random models, and their results without a cache, which serve as the reference for all
// decoding code.

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "generate/generate.h"
#include "support/mixtures.h"
#include "support/small_spec.h"
#include "tensor/tape.h"

namespace fovea::test {

using Ids = std::vector<int32_t>;
using Floats = std::vector<float>;

inline model::Transformer small_model(int64_t context = 8, int64_t vocabulary = 11) {
  model::Spec spec = small_decoder({.vocabulary = vocabulary, .context = context});
  spec.head.tied = false;  // a tied random model would repeat one token
  return made(model::validated(spec));
}

// Returns a small decoder with recurrent layers and attention.
inline model::Transformer small_recurrent_model(int64_t context = 8, int64_t vocabulary = 11) {
  model::Spec spec = small_decoder({.vocabulary = vocabulary, .context = context, .layers = 3});
  spec.head.tied = false;
  spec.decoder->mixers = {model::MixerKind::lstm, model::MixerKind::attention,
                          model::MixerKind::gru};
  spec.decoder->recurrence.width = 7;
  return made(model::validated(spec));
}

// Returns a small decoder whose layers see 20 keys, all keys and 70 keys.
inline model::Transformer small_windowed_model(int64_t context = 8, int64_t vocabulary = 11) {
  model::Spec spec = small_decoder({.vocabulary = vocabulary, .context = context, .layers = 3});
  spec.head.tied = false;
  spec.decoder->attention.windows = {20, 0, 70};
  return made(model::validated(spec));
}

// Returns a small decoder with latent attention and attention.
inline model::Transformer small_latent_model(int64_t context = 8, int64_t vocabulary = 11) {
  model::Spec spec = small_decoder({.vocabulary = vocabulary, .context = context});
  spec.head.tied = false;
  spec.decoder->mixers = {model::MixerKind::latent, model::MixerKind::attention};
  spec.decoder->latent = {.width = 9, .query_width = 6};
  spec.decoder->attention.value_width = 3;
  spec.decoder->position.kind = model::PositionKind::rotary;
  return made(model::validated(spec));
}

// Returns a small encoder-decoder.
inline model::Transformer small_translator(int64_t context = 40) {
  model::Spec spec = small_encoder_decoder({.context = context});
  spec.head.tied = false;
  return made(model::validated(spec));
}

// Returns the logits after `ids`, computed without a cache.
inline Floats logits_after(const model::Transformer& model, const Ids& ids,
                           DType compute = DType::f32) {
  const NoGradient off;
  const auto T = std::ssize(ids);
  const Tensor x = empty({1, T}, DType::i32);
  std::copy(ids.begin(), ids.end(), x.data_as<int32_t>());
  const Tensor hidden = model.hidden(x, causal_pass(compute));
  return to_floats(model.logits(hidden.view({T, hidden.dim(2)}).rows(T - 1, T)));
}

inline int32_t most_likely(const Floats& logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

inline infer::GenerateOptions greedy(int64_t tokens) {
  infer::GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = tokens;
  options.speculative_tokens = 0;
  return options;
}

constexpr uint64_t kPlenty = uint64_t{1} << 30;

inline infer::Generation continued(const infer::Generator& generator, const Ids& prompt,
                                   const infer::GenerateOptions& options) {
  return infer::generate(generator, prompt, options, {}, kPlenty)[0];
}

inline void expect_same(const infer::Generation& found, const infer::Generation& expected,
                        const std::string& what) {
  EXPECT_EQ(found.ids, expected.ids) << what;
  EXPECT_EQ(found.text, expected.text) << what;
  EXPECT_EQ(found.finish, expected.finish) << what;
  ASSERT_EQ(found.logprobs.size(), expected.logprobs.size()) << what;
  for (size_t i = 0; i < found.logprobs.size(); ++i)
    EXPECT_EQ(found.logprobs[i].logprob, expected.logprobs[i].logprob) << what << " at " << i;
}

}  // namespace fovea::test
