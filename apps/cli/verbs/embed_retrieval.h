#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "fovea/retrieval.h"

namespace fovea::cli {

// `fovea embed` with a model that computes sparse vectors, or vectors of tokens.
struct RetrievalRequest {
  std::string model;
  WeightPrecision precision = WeightPrecision::stored;
  std::vector<AdapterUse> adapters;
  std::vector<std::string> files;
  std::string out;
  TextRole role = TextRole::document;
  EmbedOptions options;
  int64_t top = 0;  // elements of a sparse vector to keep; 0 = the model's number
  enum class Format { text, json_lines, safetensors } format = Format::text;
  nlohmann::ordered_json key = {};  // options that affect the output
};

int embed_sparse(const RetrievalRequest& request);
int embed_multi_vectors(const RetrievalRequest& request);

}  // namespace fovea::cli
