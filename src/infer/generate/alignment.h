#pragma once

#include <utility>
#include <vector>

#include "fovea/text/tokenizer.h"
#include "transformer/transformer.h"

namespace fovea::infer {

// Returns, for each token of `generation`, the index of the source token with the largest
// cross-attention weight in the decoder's last layer (mean over its heads). source [S], generation
// [T] without the start token -> [T]
std::vector<int64_t> most_seen(const model::Transformer& model, const std::vector<int32_t>& source,
                               int32_t start, const std::vector<int32_t>& generation);

// Returns the aligned words as ascending pairs of word indices (source, generation). `most_seen` is
// the result of most_seen().
std::vector<std::pair<int64_t, int64_t>> aligned_words(
    const text::TranslationTokenizers& tokenizers, const std::string& source,
    const std::vector<int32_t>& generation, const std::vector<int64_t>& most_seen);

}  // namespace fovea::infer
