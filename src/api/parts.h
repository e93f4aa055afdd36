#pragma once

#include <optional>

#include "families/directory.h"
#include "fovea/model.h"

namespace fovea {

// How open_model_files() is asked for weights of a precision.
Weights weights_of(WeightPrecision precision);
Packing packing_of(WeightPrecision precision);

struct Model::Parts {
  Transformer transformer;
  Origin origin;
  std::optional<Tokenizer> tokenizer;
  std::vector<int32_t> end_ids;
};

// Whether there is a tokenizer beside the weights, or in the .gguf file.
bool comes_with_tokenizer(const std::string& path);

}  // namespace fovea
