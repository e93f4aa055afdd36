#pragma once

// Many texts through a model: alike ones together, results in the order of the texts.

#include <functional>
#include <vector>

#include "embed/sentence_model.h"

namespace fovea {

// Enough rows for products at full rate, few enough that a layer's activations stay in the cache.
constexpr int64_t kFastBatchTokens = 1024;

// On all threads; result i is tokenize(i).
std::vector<TokenizedText> tokenize_all(size_t count,
                                        const std::function<TokenizedText(size_t)>& tokenize);

// The texts by descending length, cut into batches of at most `most` tokens, padding included; a
// longer text has a batch of its own, and one without tokens none.
std::vector<std::vector<size_t>> batches_by_length(const std::vector<TokenizedText>& texts,
                                                   int64_t most);

// Row i of the result [N, width] is what `model` ([B, T] -> f32 [B, width]) makes of text i; zeros
// where it has no tokens. `most` 0 = what is fastest. No gradients.
Tensor in_batches(const std::vector<TokenizedText>& texts, int64_t width, int64_t most,
                  const std::function<Tensor(const TokenBatch&)>& model);

}  // namespace fovea
