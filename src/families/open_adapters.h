#pragma once

#include <optional>
#include <string>
#include <vector>

#include "families/directory.h"

namespace fovea {

// What to open for a path and the adapters that are requested with it.
struct AdaptedModel {
  std::string base;  // a model's directory or .gguf file
  std::vector<AdapterUse> adapters;
  std::optional<HeadSpec> head;     // of the first adapter's config.json: replaces the base's head
  std::vector<std::string> labels;  // its labels
};

// Resolves the directory of an adapter to its base. Throws BadFile if an adapter's directory has no
// adapter_config.json, or if its base is missing.
AdaptedModel adapted_model(const std::string& path, const std::vector<AdapterUse>& adapters);

// Reads the adapters and adds them to the opened base.
void add_adapters(ModelFiles& files, const AdaptedModel& adapted, Weights weights);

}  // namespace fovea
