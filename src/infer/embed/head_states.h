#pragma once

// The hidden states that a head for whole texts reads.

#include <optional>

#include "embed/sentence_model.h"

namespace fovea::infer {

// Returns the states of the last stack, [B, T, C] in `compute`. The decoder of an encoder-decoder
// reads the text too, moved by one position after the token `start` (Lewis et al. 2020, 3.2): the
// state at the position of a token has seen the whole text. Differentiable; the bits of a row do
// not depend on the other rows. `probe` may be null. `recompute`: as in Pass.
Tensor head_states(const model::Transformer& transformer, const TokenBatch& batch,
                   std::optional<int32_t> start, DType compute, const model::Probe* probe = nullptr,
                   int64_t recompute = 0);

// Returns the logits of these states.
Tensor head_logits(const model::Transformer& transformer, const TokenBatch& batch,
                   const Tensor& states);

// Returns the token with which the decoder of an encoder-decoder begins, by the checkpoint's files;
// unset for other models. Throws BadFile if the files name none.
std::optional<int32_t> decoder_start_of(const model::Spec& spec, const model::Origin& origin,
                                        const std::string& path);

}  // namespace fovea::infer
