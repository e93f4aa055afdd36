#pragma once

#include <string>
#include <variant>
#include <vector>

#include "fovea/infer/classify.h"
#include "fovea/infer/embed.h"
#include "fovea/infer/image_model.h"
#include "fovea/infer/retrieval.h"
#include "fovea/model/model.h"

namespace fovea {

// What a model is for, and the class that opens it.
//   text          generates text, or translates (Model)
//   speech        transcribes audio (Model)
//   vectors       computes a vector for each text (Embedder)
//   sparse        computes sparse vectors over the vocabulary (SparseEmbedder)
//   multi_vector  computes a vector for each token (MultiVectorEmbedder)
//   scores        scores pairs of texts (Reranker)
//   labels        labels texts (Classifier)
//   entities      labels parts of texts (Classifier)
//   answers       finds answers in texts (Classifier)
//   masks         predicts masked tokens (Classifier); Embedder opens it too
//   images        computes vectors or labels of images (ImageModel)
enum class ModelUse {
  text,
  speech,
  vectors,
  sparse,
  multi_vector,
  scores,
  labels,
  entities,
  answers,
  masks,
  images
};
const char* name_of(ModelUse use);

// Returns what the model in a directory or file is for, by its configuration; weights are not read.
// Throws BadFile if the configuration is missing or damaged, and Unsupported if its kind of model
// is not known.
ModelUse model_use(const std::string& path);

// Opens a model by the class that model_use() names. `adapters`: as for Model::open(). Throws the
// errors of model_use() and of the class's open().
using AnyModel =
    std::variant<model::Model, infer::Embedder, infer::SparseEmbedder, infer::MultiVectorEmbedder,
                 infer::Reranker, infer::Classifier, infer::ImageModel>;
AnyModel open(const std::string& path,
              model::WeightPrecision precision = model::WeightPrecision::stored,
              std::optional<DType> cache = {}, const std::vector<model::AdapterUse>& adapters = {});

}  // namespace fovea
