#pragma once

// The weights of a pooling that are trained with an embedder.

#include <string>
#include <vector>

#include "embed/modules.h"
#include "fovea/model/spec.h"
#include "fovea/train/train_embedder.h"

namespace fovea::train {

class TrainedPooling {
 public:
  // The weights begin as those of the model, or equal. Throws a FieldError if the modules do not
  // suit: there must be a Transformer and, for tokens, a single pooling.
  TrainedPooling(LearnedPooling kind, const infer::SentenceModules& modules,
                 const model::Spec& spec);

  std::vector<model::NamedParameter> parameters();
  // Returns the model's modules with the current weights, as differentiable tensors.
  infer::SentenceModules modules() const;
  // Replaces the pooling in a sentence-transformers directory. WeightedLayerPooling is a module of
  // sentence-transformers. AttentionPooling is written with its Python code, which
  // sentence-transformers loads with trust_remote_code.
  void write(const std::string& folder) const;

 private:
  void write_layers(const std::string& folder) const;
  void write_attention(const std::string& folder) const;

  LearnedPooling kind_;
  int64_t width_;  // of the Transformer
  infer::SentenceModules modules_;
  model::Parameter weights_;  // layers: [layers + 1]; tokens: [C]; both divided by kScale
};

}  // namespace fovea::train
