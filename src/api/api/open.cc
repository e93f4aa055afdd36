#include "fovea/open.h"

#include "base/files.h"
#include "checkpoint/module_files.h"
#include "embed/cross_encoder.h"
#include "embed/modules.h"
#include "embed/vector_kind.h"
#include "fovea/model/spec.h"

namespace fovea {

const char* name_of(ModelUse use) {
  switch (use) {
    case ModelUse::text: return "text";
    case ModelUse::speech: return "speech";
    case ModelUse::vectors: return "vectors";
    case ModelUse::sparse: return "sparse vectors";
    case ModelUse::multi_vector: return "vectors of tokens";
    case ModelUse::scores: return "scores of pairs";
    case ModelUse::labels: return "labels";
    case ModelUse::entities: return "entities";
    case ModelUse::answers: return "answers";
    case ModelUse::masks: return "masked words";
    case ModelUse::images: return "images";
  }
  return "";
}

namespace {

ModelUse use_of(const model::Spec& spec) {
  const bool hears = spec.input.kind == model::InputKind::audio && spec.decoder;
  switch (spec.head.kind) {
    case model::HeadKind::sequence:
      return spec.head.labels == 1 ? ModelUse::scores : ModelUse::labels;
    case model::HeadKind::token: return ModelUse::entities;
    case model::HeadKind::span: return ModelUse::answers;
    case model::HeadKind::pooled: return hears ? ModelUse::speech : ModelUse::vectors;
    case model::HeadKind::language_model: break;
  }
  if (!spec.decoder) return ModelUse::masks;
  return hears ? ModelUse::speech : ModelUse::text;
}

}  // namespace

ModelUse model_use(const std::string& path) {
  if (infer::ImageModel::reads_images(path)) return ModelUse::images;
  switch (infer::vector_kind(path)) {
    case infer::VectorKind::sparse: return ModelUse::sparse;
    case infer::VectorKind::multiple: return ModelUse::multi_vector;
    case infer::VectorKind::dense: break;
  }
  // In a sentence-transformers directory the Transformer may be in a subdirectory.
  const bool sentences = model::has_modules(path);
  if (model::is_static(path) || (sentences && !is_file(path + "/config.json")))
    return ModelUse::vectors;
  const model::Spec spec = model::read_model_spec(path);
  const ModelUse use = use_of(spec);
  if (infer::labels_answers(path, spec)) return ModelUse::scores;
  const bool pools = use == ModelUse::text || use == ModelUse::masks;  // without its own head
  return pools && (sentences || infer::names_pooling(path)) ? ModelUse::vectors : use;
}

AnyModel open(const std::string& path, model::WeightPrecision precision, std::optional<DType> cache,
              const std::vector<model::AdapterUse>& adapters) {
  switch (model_use(path)) {
    case ModelUse::vectors: return infer::Embedder::open(path, precision, adapters);
    case ModelUse::sparse: return infer::SparseEmbedder::open(path, precision, adapters);
    case ModelUse::multi_vector: return infer::MultiVectorEmbedder::open(path, precision, adapters);
    case ModelUse::scores: return infer::Reranker::open(path, precision, adapters);
    case ModelUse::labels:
    case ModelUse::entities:
    case ModelUse::answers:
    case ModelUse::masks: return infer::Classifier::open(path, precision, adapters);
    case ModelUse::images: return infer::ImageModel::open(path, precision, adapters);
    case ModelUse::text:
    case ModelUse::speech: break;
  }
  return model::Model::open(path, precision, cache, adapters);
}

}  // namespace fovea
