#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fovea/infer/retrieval.h"

namespace fovea::cli {

// `fovea embed` with a model that computes sparse vectors, or vectors of tokens.
struct RetrievalRequest {
  std::string model;
  model::WeightPrecision precision = model::WeightPrecision::stored;
  std::vector<model::AdapterUse> adapters;
  std::vector<std::string> files;
  std::string out;
  infer::TextRole role = infer::TextRole::document;
  infer::EmbedOptions options;
  int64_t top = 0;  // elements of a sparse vector to keep; 0 = the model's number
  enum class Format { text, json_lines, safetensors } format = Format::text;
  nlohmann::ordered_json key = {};  // options that affect the output
};

int embed_sparse(const RetrievalRequest& request);
int embed_multi_vectors(const RetrievalRequest& request);

}  // namespace fovea::cli
