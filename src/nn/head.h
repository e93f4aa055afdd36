#pragma once

#include "fovea/spec.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/pass.h"

namespace fovea {

// What turns hidden states into outputs: output(norm(activation(transform(pool(hidden))))).
struct Head {
  HeadSpec spec;
  Linear transform, output;  // output.weight is absent where it is the token embedding
  Norm norm;

  Head() = default;
  Head(const Spec& spec, const NormSpec& norm);

  // hidden [B, T, C] -> f32 (f64 of f64) [B, T, V] of a language model; [B, T, labels] of token and
  // span; [B, labels] of sequence; [B, C] of pooled. `valid`: where the tokens of each batch row
  // are; empty = everywhere. Rows of hidden states alone, [R, C], do for heads that do not pool.
  Tensor operator()(const Tensor& hidden, const Parameter& token_embedding,
                    const std::vector<Interval>& valid) const;

  template <class Visitor>
  void each(Visitor& f, const std::string& name) {
    transform.each(f, name + ".transform");
    norm.each(f, name + ".norm");
    output.each(f, name + ".output");
  }
};

// One vector for each batch row, of its valid tokens.   hidden [B, T, C] -> [B, C]
Tensor pool(const Tensor& hidden, Pooling pooling, const std::vector<Interval>& valid);

}  // namespace fovea
