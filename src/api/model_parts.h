#pragma once

#include <optional>

#include "families/directory.h"
#include "fovea/translate.h"

namespace fovea {

// The Weights for open_model_files() of a precision.
Weights weights_of(WeightPrecision precision);
Packing packing_of(WeightPrecision precision);

struct Model::Parts {
  Transformer transformer;
  Origin origin;
  // For the input and the generated text: two for a model that translates.
  std::optional<Tokenizer> tokenizer, target_tokenizer;
  std::vector<int32_t> end_ids;
  DType cache = DType::f32;  // dtype of keys and values during generation
};

// The text before every source: from the options, or from the checkpoint for their task.
std::string source_prefix_of(const Model& model, const TranslateOptions& options);

// Throws InvalidArgument if the draft cannot guess for the model: its vocabulary differs.
void check_draft(const Model& model, const Model& draft);

// Whether there is a tokenizer next to the weights, or in the .gguf file.
bool comes_with_tokenizer(const std::string& path);

}  // namespace fovea
