#pragma once

#include <vector>

#include "cache/kv_cache.h"
#include "model/transformer.h"

namespace fovea {

// How a model reads texts of which its pages hold the beginnings: passes over ragged batches.

// Whether the keys of a text depend on nothing but the tokens up to them: not where an encoder read
// something before, nor where rotations depend on how long the text will become.
bool shares_beginnings(const Spec& spec);

// What is to be read before the first token, by an encoder.
struct Source {
  const std::vector<int32_t>* ids;
  CachedText* text;  // receives what the decoder will look at
};
// Batches have about `step_tokens` tokens.
void encode_sources(const Transformer& model, PagePool& pool, std::vector<Source> sources,
                    DType compute, int64_t step_tokens);

// The hidden states [R, C] of a ragged batch's new tokens.
Tensor read_batch(const Transformer& model, PagePool& pool, std::vector<KvCache::Member> members,
                  const std::vector<int32_t>& tokens, DType compute, const Probe* probe = nullptr);

// The logits [picked, V] behind some of these rows.
Tensor logits_of(const Transformer& model, const Tensor& hidden, const std::vector<int32_t>& rows);

}  // namespace fovea
