#pragma once

#include <string>
#include <variant>
#include <vector>

#include "fovea/classify.h"
#include "fovea/embed.h"
#include "fovea/image_model.h"
#include "fovea/model.h"
#include "fovea/retrieval.h"

namespace fovea {

// What a model is for, and the class that opens it.
//   text          generates text, or translates (Model)
//   speech        transcribes sound (Model)
//   vectors       computes a vector for each text (Embedder)
//   sparse        computes sparse vectors over the vocabulary (SparseEmbedder)
//   multi_vector  computes a vector for each token (MultiVectorEmbedder)
//   scores        scores pairs of texts (Reranker)
//   labels        labels texts (Classifier)
//   images        computes vectors or labels of pictures (ImageModel)
enum class ModelUse { text, speech, vectors, sparse, multi_vector, scores, labels, images };
const char* name_of(ModelUse use);

// Returns what the model in a directory or file is for, by its configuration; weights are not read.
// A model of tokens or spans whose heads are not those of a text counts as `vectors`: Classifier
// opens it too. Throws BadFile if the configuration is missing or damaged, and Unsupported if its
// kind of model is not known.
ModelUse model_use(const std::string& path);

// Opens a model by the class that model_use() names. `adapters`: as for Model::open(). Throws the
// errors of model_use() and of the class's open().
using AnyModel = std::variant<Model, Embedder, SparseEmbedder, MultiVectorEmbedder, Reranker,
                              Classifier, ImageModel>;
AnyModel open(const std::string& path, WeightPrecision precision = WeightPrecision::stored,
              CachePrecision cache = CachePrecision::automatic,
              const std::vector<AdapterUse>& adapters = {});

}  // namespace fovea
