#pragma once

#include <string>
#include <vector>

#include "fovea/model/hub.h"

namespace fovea::cli {

// A model or a data set in the cache of the Hugging Face Hub, as it is listed.
struct ListedModel {
  model::CachedRepository repository;
  std::string family, use;  // "qwen3", "text"
};

// Returns the models in the cache, those used last first.
std::vector<ListedModel> listed_models(const model::HubSettings& settings);

std::string model_table(const std::vector<ListedModel>& models);

}  // namespace fovea::cli
