#pragma once

#include <utility>
#include <vector>

#include "cache/kv_cache.h"
#include "transformer/prompt_images.h"
#include "transformer/transformer.h"

namespace fovea::infer {

// Runs a model over ragged batches of texts whose prefixes are in the cache. The `adapter` of a
// text is 0 for the model's weights alone, or i for the alternatives of number i - 1 of its layers.

// Returns whether each key of a text depends only on the tokens up to it, so that texts can share
// the keys of a common prefix. False if there is an encoder, or if rotations depend on the final
// length of the text.
bool shares_beginnings(const model::Spec& spec);

// Returns the length of the longest text whose rotary frequencies are those of shorter texts
// (LongRoPE; Ding et al. 2024); the largest number if the length does not matter. Longer texts are
// read again when they reach it, as in transformers.
int64_t short_context(const model::Spec& spec);

// The input of an encoder, which is encoded before the first token is generated.
struct Source {
  const std::vector<int32_t>* ids;
  model::CachedText* text;  // receives the keys and values of cross-attention
  size_t adapter = 0;
};
// Encodes the sources in batches of at most 2 * `step_tokens` tokens; a longer source gets a
// separate batch.
void encode_sources(const model::Transformer& model, model::PagePool& pool,
                    std::vector<Source> sources, DType compute, int64_t step_tokens);

// Stores the keys and values of cross-attention for the encoder's output of one text, [1, S, C].
void remember_source(const model::Transformer& model, model::PagePool& pool,
                     model::CachedText& text, const Tensor& memory, DType compute);

// Returns the rows of each adapter, given the adapter of each text and the number of its rows.
std::vector<model::AdaptedRows> rows_by_adapter(
    const std::vector<std::pair<size_t, int64_t>>& texts);

// Returns the hidden states [R, C] of the new tokens of a ragged batch. `adapters` has the adapter
// of each text; empty = all 0. `vectors` replace the embeddings of some tokens.
Tensor read_batch(const model::Transformer& model, model::PagePool& pool,
                  std::vector<model::KvCache::Member> members, const std::vector<int32_t>& tokens,
                  DType compute, const model::Probe* probe = nullptr,
                  const std::vector<size_t>& adapters = {},
                  const model::TokenVectors& vectors = {});

// Returns the logits [rows, V] of the given rows of `hidden`, in host memory.
Tensor logits_of(const model::Transformer& model, const Tensor& hidden,
                 const std::vector<int32_t>& rows);

}  // namespace fovea::infer
