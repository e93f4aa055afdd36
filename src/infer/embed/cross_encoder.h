#pragma once

// A sequence classifier with one label that reads two texts together (Nogueira and Cho 2019). A
// language model that answers whether a document suits a query becomes such a classifier: its score
// is the logit of the token for yes minus that for no, whose sigmoid is the probability of yes
// among the two.

#include "embed/sentence_model.h"

namespace fovea::infer {

// Returns whether the path is a .gguf file of a decoder whose head has only the rows of yes and no,
// as llama.cpp's converter makes it of such a language model.
bool labels_answers(const std::string& path, const model::Spec& spec);

struct CrossEncoder {
  model::Transformer transformer;
  TextFormat format;
  NamedPrompts prompts;                  // the default one precedes the query
  std::optional<Activation> activation;  // activation of the score; unset = none
  std::vector<std::string> warnings;
  std::optional<int32_t> start;  // see decoder_start_of()
  model::Origin origin;
  std::string path;  // the directory that was opened

  // Throws Unsupported if the model is neither a classifier with one label nor a decoder with the
  // tokens "yes" and "no".
  static CrossEncoder open(const std::string& folder, model::Weights weights,
                           const model::Packing& packing = {},
                           const std::vector<model::AdapterUse>& adapters = {});

  // Returns the score of each pair, before the activation -> f32 [B, 1]; differentiable
  Tensor logits(const TokenBatch& batch, DType compute) const;
};

}  // namespace fovea::infer
