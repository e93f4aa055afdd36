#pragma once

#include <map>
#include <optional>

#include "families/directory.h"
#include "families/image_encoder.h"
#include "fovea/model.h"

namespace fovea {

// Return the arguments of open_model_files() for a precision.
Weights weights_of(WeightPrecision precision);
Packing packing_of(WeightPrecision precision);
// Like packing_of(); int8 weights have one scale for each output. For models of vectors and scores,
// whose speed is that of their products and whose results hardly change (docs/performance.md).
Packing packing_by_output(WeightPrecision precision);

// Returns formats and their bytes, those with most bytes first.
std::vector<FormatBytes> largest_first(const std::map<std::string, int64_t>& formats);

struct Model::Parts {
  std::string path;  // the directory or file that was opened; empty: a new model
  Transformer transformer;
  Origin origin;
  std::vector<std::string> warnings;
  // The tokenizers of the input and of the generated text; those of a translation model may differ.
  std::optional<Tokenizer> tokenizer, target_tokenizer;
  std::vector<int32_t> end_ids;
  std::shared_ptr<const ImageEncoder> images;  // null: the model reads no pictures
  DType cache = DType::f32;                    // dtype of keys and values during generation
};

// Returns whether the directory or the .gguf file contains a tokenizer.
bool comes_with_tokenizer(const std::string& path);

}  // namespace fovea
