#include "embed/retrieval_parts.h"

#include <algorithm>

#include "base/fields.h"
#include "base/files.h"
#include "checkpoint/module_files.h"
#include "embed/embedder_parts.h"
#include "embed/vector_kind.h"
#include "safetensors/safetensors.h"
#include "tensor/host_values.h"

namespace fovea::infer {

std::string prompt_name_for(const std::map<std::string, std::string>& prompts, TextRole role) {
  const std::vector<const char*> names =
      role == TextRole::query ? std::vector{"query"} : std::vector{"document", "passage", "corpus"};
  const auto found =
      std::ranges::find_if(names, [&](const char* name) { return prompts.contains(name); });
  return found == names.end() ? "" : *found;
}

std::string prompt_for(const NamedPrompts& model, TextRole role, const EmbedOptions& options) {
  EmbedOptions chosen = options;
  if (!chosen.prompt && chosen.prompt_name.empty())
    chosen.prompt_name = prompt_name_for(model.prompts, role);
  return prompt_of(model, chosen);
}

void check_retrieval_options(const EmbedOptions& options) {
  check_fields(options);
  check_field(options.dimensions == 0, "dimensions", "{}; expected a model of dense vectors",
              options.dimensions);
  check_field(!options.normalise, "normalise", "given; expected a model of dense vectors");
}

std::vector<TextLength> lengths_of(const std::vector<TokenizedText>& texts) {
  std::vector<TextLength> lengths;
  for (const TokenizedText& text : texts) lengths.push_back({std::ssize(text.ids), text.cut});
  return lengths;
}

void write_vectors(const SparseVectors& vectors, const std::string& path) {
  SafeTensorsImage::Named tensors = {{"starts", vector_tensor(vectors.starts)},
                                     {"indices", vector_tensor(vectors.indices)},
                                     {"values", vector_tensor(vectors.values)}};
  const SafeTensorsImage image(std::move(tensors), {{"width", std::to_string(vectors.width)}});
  write_file_atomically(path, image.pieces());
}

void write_vectors(const MultiVectors& vectors, const std::string& path) {
  const Tensor values = vector_tensor(vectors.values);
  SafeTensorsImage::Named tensors = {
      {"starts", vector_tensor(vectors.starts)},
      {"values", values.view({vectors.starts.back(), vectors.width})}};
  const SafeTensorsImage image(std::move(tensors));
  write_file_atomically(path, image.pieces());
}

VectorKind vector_kind(const std::string& folder) {
  if (!model::has_modules(folder))
    return model::is_original_colbert(folder) ? VectorKind::multiple : VectorKind::dense;
  const auto sparse = [](const model::ListedModule& module) {
    return module.kind == "SpladePooling" || module.kind == "SparseStaticEmbedding";
  };
  for (const model::ListedModule& module : model::list_modules(folder)) {
    if (sparse(module)) return VectorKind::sparse;
    if (module.kind == "MultiVectorMask") return VectorKind::multiple;
    if (module.kind != "Router") continue;
    for (const auto& [route, chain] : model::read_router(module.folder))
      if (std::ranges::any_of(chain, sparse)) return VectorKind::sparse;
  }
  const auto type = find_setting(folder, "model_type");
  if (type == "SparseEncoder") return VectorKind::sparse;
  return type == "ColBERT" || type == "MultiVectorEncoder" ? VectorKind::multiple
                                                           : VectorKind::dense;
}

}  // namespace fovea::infer
