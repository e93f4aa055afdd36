#pragma once

#include <vector>

#include "fovea/model/spec.h"
#include "nn/attention.h"
#include "nn/ffn.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/pass.h"

namespace fovea::model {

// Pools tokens by attention (Zhai et al. 2022, "Scaling Vision Transformers", 3.4):
// y = attention(query, hidden) + ffn(norm(attention(query, hidden))).
struct AttentionPooling {
  Parameter query;  // [1, C]
  Attention attention;
  Norm norm;
  FeedForward ffn;

  AttentionPooling(const StackSpec& stack, int64_t width);

  // hidden [B, T, C] -> [B, C]
  Tensor operator()(const Tensor& hidden, const std::vector<Interval>& valid) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    visit(f, name + ".query", query);
    attention.each(f, name + ".attention");
    norm.each(f, name + ".norm");
    ffn.each(f, name + ".ffn");
  }
};

// Computes outputs from hidden states: output(norm(activation(transform(pool(hidden))))), of which
// each part may be missing.
struct Head {
  HeadSpec spec;
  std::vector<AttentionPooling> attention;  // at most one, outside of the struct: it is large
  Linear transform, output;                 // output.weight is empty if it is the token embedding
  Linear distilled;                         // the output layer of an image's distillation token
  Norm norm;
  int64_t unpooled = 0;  // first_and_mean: tokens of an image that are not patches

  Head() = default;
  // `last` is the stack whose output the head reads.
  Head(const Spec& spec, const StackSpec& last);

  // hidden [B, T, C] -> f32 (f64 for f64): [B, T, V] for a language model; [B, T, labels] for token
  // and span; [B, labels] for sequence; [B, C] or [B, projection] for pooled. `valid`: the tokens
  // of each batch row that are not padding; empty = all. Heads that do not pool also accept rows
  // [R, C].
  Tensor operator()(const Tensor& hidden, const Parameter& token_embedding,
                    const std::vector<Interval>& valid) const;
  // Returns the cross-entropy of the outputs, as the op cross_entropy() does. Large outputs of a
  // language model are computed in blocks (kLogitsAtOnce), with the same bits. Ignores the softcap
  // and the blocks of the options.
  Tensor loss(const Tensor& hidden, const Parameter& token_embedding,
              const std::vector<Interval>& valid, const Tensor& labels,
              const LossOptions& options) const;
  // Returns the logarithms of the probabilities that a language model gives to the labels, of their
  // shape, as the op log_probability() does; outputs are computed in blocks as in loss().
  Tensor log_probabilities(const Tensor& hidden, const Parameter& token_embedding,
                           const Tensor& labels) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    for (AttentionPooling& one : attention) one.each(f, name + ".pooling");
    transform.each(f, name + ".transform");
    norm.each(f, name + ".norm");
    output.each(f, name + ".output");
    distilled.each(f, name + ".distilled");
  }

 private:
  Tensor pooled(const Tensor& hidden, const std::vector<Interval>& valid) const;
  // Returns the input of the output layer.
  Tensor features(const Tensor& hidden, const std::vector<Interval>& valid) const;
  // Whether the outputs for this number of rows are computed in blocks.
  bool in_blocks(const Parameter& matrix, int64_t rows) const;
};

// Pools the valid tokens of each batch row into one vector.   hidden [B, T, C] -> [B, C]
// Throws InvalidArgument if a row has no valid tokens.
Tensor pool(const Tensor& hidden, Pooling pooling, const std::vector<Interval>& valid);

}  // namespace fovea::model
