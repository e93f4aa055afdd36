#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "fovea/model/model.h"
#include "fovea/model/spec.h"
#include "fovea/nn/layers.h"
#include "fovea/nn/parameter.h"

namespace fovea::nn {

// A whole model of tokens, for loops of one's own: embeddings, stacks and head as a Spec describes
// them. Copies share the parameters. Letters: B batch, T and S tokens, C width, V outputs.
class Transformer {
 public:
  // Random weights. Throws the errors of validated(), and InvalidArgument if the Spec reads
  // images or audio.
  Transformer(const model::Spec& spec, uint64_t seed);
  // A copy of a model's weights; packed ones are shared, and not trained.
  explicit Transformer(const model::Model& model);

  const model::Spec& spec() const;
  const std::vector<NamedParameter>& parameters() const { return parameters_; }

  // Returns the output of the encoder.   ids i32 [B, S] -> [B, S, C] in pass.compute
  Tensor encode(const Tensor& ids, const Pass& pass = {}) const;
  // Returns the output of the decoder, or of the encoder if there is no decoder. A decoder that
  // attends to an encoder needs `memory`, the result of encode().
  // ids i32 [B, T] -> [B, T, C] in pass.compute
  Tensor hidden(const Tensor& ids, const Pass& pass = {}, const Tensor& memory = {}) const;
  // Returns the outputs of the head: of a language model or a tagger for each token, else for each
  // row.   hidden [B, T, C] -> f32 [B, T, V] or [B, V]
  Tensor logits(const Tensor& hidden) const;
  // Returns the mean cross-entropy of the labels that are at least 0, without storing large logits.
  // hidden [B, T, C], labels i32 [B, T], or [B] if there is an output for each row -> f64 [1]
  Tensor loss(const Tensor& hidden, const Tensor& labels) const;

 private:
  friend class fovea::model::Model;
  struct Inside;
  std::shared_ptr<Inside> inside_;
  std::vector<NamedParameter> parameters_;
};

}  // namespace fovea::nn
