#pragma once

#include <optional>

#include "families/directory.h"
#include "fovea/translate.h"

namespace fovea {

// How open_model_files() is asked for weights of a precision.
Weights weights_of(WeightPrecision precision);
Packing packing_of(WeightPrecision precision);

struct Model::Parts {
  Transformer transformer;
  Origin origin;
  // Of what is read, and of what is written: two where the model translates between two.
  std::optional<Tokenizer> tokenizer, target_tokenizer;
  std::vector<int32_t> end_ids;
  DType cache = DType::f32;  // of keys and values while it writes
};

// What stands in front of every source: as the options say, or the checkpoint for their task.
std::string source_prefix_of(const Model& model, const TranslateOptions& options);

// InvalidArgument where the draft cannot guess for the model: its vocabulary is another one.
void check_draft(const Model& model, const Model& draft);

// Whether there is a tokenizer beside the weights, or in the .gguf file.
bool comes_with_tokenizer(const std::string& path);

}  // namespace fovea
