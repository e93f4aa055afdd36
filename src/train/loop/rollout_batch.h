#pragma once

#include <map>
#include <span>
#include <vector>

#include "checkpoint/snapshot.h"
#include "losses/batch.h"

namespace fovea::train {

// A batch of answers that the policy has generated, and what is known of each of their tokens.
struct RolloutBatch {
  // What the decoder reads: the prompt, or the start token of an encoder-decoder, and the answer
  // with its end token.
  std::vector<std::vector<int32_t>> ids;
  std::vector<int32_t> prompts;  // number of tokens before each answer
  // Of each answer, the tokens in `ids` after the prompt that are an environment's replies, as
  // begin, end, begin, end, ...: they are read, but are no tokens of the answer. Empty = none.
  std::vector<std::vector<int32_t>> replies;
  // Of an encoder-decoder: the prompts, which the encoder reads. Else empty.
  std::vector<std::vector<int32_t>> sources;
  std::vector<int32_t> trained;  // whether the loss of the policy includes the answer

  // By token of the answers, one answer after another; empty = unknown.
  std::vector<float> old;        // log-probabilities of the policy that wrote them
  std::vector<float> reference;  // log-probabilities of the reference
  std::vector<float> values;     // of the states before the tokens
  std::vector<float> advantages, returns;

  size_t count() const { return ids.size(); }
  int64_t length(size_t answer) const;  // number of its tokens
  std::vector<int64_t> starts() const;  // of each answer in the arrays above, and their end

  // Returns the inputs of a forward pass over some answers, whose labels are the answers' tokens.
  // `padding`: the token after the end of a shorter row.
  Batch batch_of(std::span<const size_t> answers, int32_t padding) const;
  // Returns the numbers of the tokens of some answers, in the order of batch_of(): f32 [R].
  Tensor picked(std::span<const size_t> answers, const std::vector<float>& numbers) const;

  // The tensors of a snapshot.
  std::map<std::string, Tensor> state() const;
  static RolloutBatch restored(const model::Snapshot& snapshot);

 private:
  void add_sources(Batch& batch, std::span<const size_t> answers, int32_t padding) const;
};

// Divides answers into passes of at most `most`, those of similar length together.
std::vector<std::vector<size_t>> passes_of(const RolloutBatch& batch, std::vector<size_t> answers,
                                           int64_t most);

}  // namespace fovea::train
