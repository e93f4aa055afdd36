#pragma once

// Directories with several models: config.json has a config for each of them, and the names of
// their tensors begin differently.

#include <memory>
#include <string>
#include <vector>

#include "families/registry.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// Tensors whose names begin with `theirs` in the file, and with `ours` in the model's family.
struct Renaming {
  std::string theirs, ours;
};

// Returns the tensors of one of the models; the first renaming that fits a name applies to it.
std::shared_ptr<const TensorSource> part_of(std::shared_ptr<const TensorSource> whole,
                                            const std::vector<Renaming>& renamings);

// Returns the config under `key` as that of a model of its own. Throws BadFile, naming the file, if
// it is not an object.
nlohmann::json nested_config(const nlohmann::json& whole, const char* key, const Family& family,
                             const std::string& file);

}  // namespace fovea::model
