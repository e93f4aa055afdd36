#pragma once

#include <map>
#include <optional>

#include "fovea/model/model.h"
#include "loading/image_encoder.h"
#include "loading/loading.h"

namespace fovea::model {

// What a Model consists of.
struct ModelParts {
  std::string path;  // the directory or file that was opened; empty: a new model
  Transformer transformer;
  Origin origin;
  std::vector<std::string> warnings;
  // The tokenizers of the input and of the generated text; those of a translation model may differ.
  std::optional<text::Tokenizer> tokenizer, target_tokenizer;
  std::vector<int32_t> end_ids;
  std::shared_ptr<const ImageEncoder> images;  // null: the model reads no images
  DType cache = DType::f32;                    // dtype of keys and values during generation

  static ModelParts& of(const Model& model) { return *model.parts_; }
};

inline ModelParts& parts_of(const Model& model) { return ModelParts::of(model); }

// Returns whether the directory or the .gguf file contains a tokenizer.
bool comes_with_tokenizer(const std::string& path);

}  // namespace fovea::model
