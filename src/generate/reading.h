#pragma once

#include <vector>

#include "cache/kv_cache.h"
#include "model/transformer.h"

namespace fovea {

// Runs a model over ragged batches of texts whose prefixes are in the cache.

// Returns whether each key of a text depends only on the tokens up to it, so that texts can share
// the keys of a common prefix. False if there is an encoder, or if rotations depend on the final
// length of the text.
bool shares_beginnings(const Spec& spec);

// The input of an encoder, which is encoded before the first token is generated.
struct Source {
  const std::vector<int32_t>* ids;
  CachedText* text;  // receives the keys and values of cross-attention
};
// Encodes the sources in batches of at most 2 * `step_tokens` tokens; a longer source gets a
// separate batch.
void encode_sources(const Transformer& model, PagePool& pool, std::vector<Source> sources,
                    DType compute, int64_t step_tokens);

// Returns the hidden states [R, C] of the new tokens of a ragged batch.
Tensor read_batch(const Transformer& model, PagePool& pool, std::vector<KvCache::Member> members,
                  const std::vector<int32_t>& tokens, DType compute, const Probe* probe = nullptr);

// Returns the logits [rows, V] of the given rows of `hidden`, in host memory.
Tensor logits_of(const Transformer& model, const Tensor& hidden, const std::vector<int32_t>& rows);

}  // namespace fovea
