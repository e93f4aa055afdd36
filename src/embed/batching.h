#pragma once

// Runs many texts through a model: texts of similar length share a batch, and results keep the
// order of the texts.

#include <functional>
#include <vector>

#include "embed/sentence_model.h"

namespace fovea {

// Enough rows for full speed of products, few enough that the activations of a layer fit into the
// cache.
constexpr int64_t kFastBatchTokens = 1024;

// Runs on all threads; result i is tokenize(i).
std::vector<TokenizedText> tokenize_all(size_t count,
                                        const std::function<TokenizedText(size_t)>& tokenize);

// Sorts the texts by descending length and divides them into batches of at most `most` tokens,
// including padding; a longer text gets a batch of its own, and a text without tokens none.
std::vector<std::vector<size_t>> batches_by_length(const std::vector<TokenizedText>& texts,
                                                   int64_t most);

// Row i of the result [N, width] is the output of `model` ([B, T] -> f32 [B, width]) for text i;
// zeros if it has no tokens. `most` 0 = the fastest size. No gradients.
Tensor in_batches(const std::vector<TokenizedText>& texts, int64_t width, int64_t most,
                  const std::function<Tensor(const TokenBatch&)>& model);

}  // namespace fovea
