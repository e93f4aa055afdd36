#pragma once

// Runs many texts through a model: texts of similar length share a batch, and results keep the
// order of the texts.

#include <functional>
#include <vector>

#include "embed/sentence_model.h"

namespace fovea::infer {

// The default maximum of tokens per batch: enough rows for matrix products at full speed, and few
// enough that the activations of a layer fit into the processor's cache.
constexpr int64_t kFastBatchTokens = 1024;

// Returns tokenize(i) for i in [0, count), computed on all threads.
std::vector<TokenizedText> tokenize_all(size_t count,
                                        const std::function<TokenizedText(size_t)>& tokenize);

// Returns the indices of the texts, sorted by descending length and divided into batches of at most
// `most` tokens, including padding. A text of more than `most` tokens gets a separate
// batch, and a text without tokens gets none.
std::vector<std::vector<size_t>> batches_by_length(const std::vector<TokenizedText>& texts,
                                                   int64_t most);

// Calls `compute` for batches of all texts that have tokens, with the indices of a batch's texts,
// from several threads. `most`: see batches_by_length(); 0 = kFastBatchTokens. Records no
// gradients.
void each_batch(const std::vector<TokenizedText>& texts, int64_t most,
                const std::function<void(const TokenBatch&, const std::vector<size_t>&)>& compute);

// Runs `model` ([B, T] -> f32 [B, width]) on the texts. Row i of the result [texts, width] is the
// output for text i, or zeros if the text has no tokens. See each_batch().
Tensor in_batches(const std::vector<TokenizedText>& texts, int64_t width, int64_t most,
                  const std::function<Tensor(const TokenBatch&)>& model);

}  // namespace fovea::infer
