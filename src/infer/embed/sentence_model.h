#pragma once

// A model that computes one vector for each text: a Transformer, its tokenizer and the modules
// after it.

#include <optional>
#include <string>
#include <vector>

#include "embed/modules.h"
#include "embed/text_format.h"
#include "loading/loading.h"

namespace fovea::infer {

// Tokens of several texts, padded at the end.
struct TokenBatch {
  model::Sequence sequence;     // ids and, if the texts have any, types [B, T]
  std::vector<Interval> valid;  // the tokens of each row, without padding
};

// Returns the batch of the texts with the indices chosen[0], chosen[1], ...; each text must have at
// least one token.
TokenBatch token_batch(const std::vector<TokenizedText>& texts, const std::vector<size_t>& chosen);

// Returns the vectors of tokens [B, T, C]: those of the last layer, in `compute`, or the weighted
// means of several layers. `probe` may be null.
Tensor token_states(const model::Transformer& transformer, const SentenceModules& modules,
                    const TokenBatch& batch, DType compute, const model::Probe* probe = nullptr,
                    int64_t recompute = 0);
// Returns the vectors of texts, f32 [B, modules.width]. The first `prompt` tokens of each text
// belong to a prompt, which some models exclude from the pooling. Differentiable; the bits of a row
// do not depend on the other rows.
Tensor text_vectors(const model::Transformer& transformer, const SentenceModules& modules,
                    const TokenBatch& batch, int64_t prompt, DType compute,
                    const model::Probe* probe = nullptr, int64_t recompute = 0);

// Returns the vectors of texts from the vectors of their tokens [B, T, C].
Tensor pooled_vectors(const Tensor& states, const SentenceModules& modules, const TokenBatch& batch,
                      int64_t prompt);

struct SentenceModel {
  model::Transformer transformer;
  model::Origin origin;
  SentenceModules modules;
  TextFormat format;
  std::vector<std::string> warnings;

  // Opens a sentence-transformers directory, or the directory of a Transformer alone. In the latter
  // case, the vector of a text is the mean of the vectors of its tokens.
  static SentenceModel open(const std::string& folder, model::Weights weights,
                            const model::Packing& packing = {},
                            const std::vector<model::AdapterUse>& adapters = {});

  // Moves the weights of the Transformer and of the modules.
  void move_to(const Device& device);

  Tensor token_states(const TokenBatch& batch, DType compute) const {
    return infer::token_states(transformer, modules, batch, compute);
  }
  Tensor embed(const TokenBatch& batch, int64_t prompt, DType compute) const {
    return text_vectors(transformer, modules, batch, prompt, compute);
  }
};

}  // namespace fovea::infer
