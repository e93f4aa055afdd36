#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/peft/adapters.h"
#include "loading/loading.h"

namespace fovea::model {

// What to open for a path and the adapters that are requested with it.
struct AdaptedModel {
  std::string base;  // a model's directory or .gguf file
  std::vector<AdapterUse> adapters;
  std::optional<HeadSpec> head;     // of the first adapter's config.json: replaces the base's head
  std::vector<std::string> labels;  // its labels
  ProblemType problem = ProblemType::automatic;  // what they predict
};

// Resolves the directory of an adapter to its base. Throws BadFile if an adapter is neither a
// directory with adapter_config.json nor a .gguf file, or if its base is missing.
AdaptedModel adapted_model(const std::string& path, const std::vector<AdapterUse>& adapters);

// Reads an adapter of a model: a folder of PEFT or a .gguf file. Throws BadFile if a tensor does
// not belong to the model or is not described by the config, and Unsupported for methods that fovea
// does not have.
Adapter read_adapter(const std::string& path, const Family& family, Transformer& model);

// Reads the adapters and adds them to the opened base.
void add_adapters(ModelFiles& files, const AdaptedModel& adapted, Weights weights);

// Like add_adapters(), for a base that shares its weights with other models. Throws InvalidArgument
// if it has adapters already, and Unsupported if an adapter changes more than linear layers.
void add_adapters_to_shared(ModelFiles& files, const std::vector<AdapterUse>& adapters);

}  // namespace fovea::model
