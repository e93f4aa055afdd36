#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fovea/model/hub.h"

namespace fovea::cli {

// A model or a data set in the cache of the Hugging Face Hub, as it is listed.
struct ListedModel {
  std::string name, path, family, use;  // "Qwen/Qwen3-0.6B-GGUF", "qwen3", "text"
  bool dataset = false;
  uint64_t bytes = 0;
  int64_t last_used = 0;  // seconds since 1970
};

// Returns the models in the cache, those used last first.
std::vector<ListedModel> listed_models(const model::HubSettings& settings);

std::string model_table(const std::vector<ListedModel>& models);

}  // namespace fovea::cli
