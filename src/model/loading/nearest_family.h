#pragma once

#include <string>
#include <vector>

namespace fovea::model {

// Compares a directory whose model_type is not known with the families: names the family whose
// tensors have most names in common with the file's, the keys of config.json that this family does
// not read, and the tensors that differ. Returns one line for each; no lines if the model_type is
// known or the directory has no config.json and safetensors.
std::vector<std::string> compare_with_families(const std::string& folder);

}  // namespace fovea::model
