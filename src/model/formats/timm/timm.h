#pragma once

// Directories of timm (Wightman 2019, "PyTorch Image Models"): config.json names an architecture,
// and its sizes follow from the tensors.

#include <nlohmann/json.hpp>

#include "families/registry.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// Whether config.json is one of timm.
bool is_timm_config(const nlohmann::json& config);

struct TimmModel {
  const Family* family;   // with timm's names of tensors
  const Family* save_as;  // the same model in the files of transformers
  nlohmann::json config;  // of save_as
};
// Describes a ViT or DeiT of timm. Throws Unsupported, naming the file, for any other model.
TimmModel timm_model(const nlohmann::json& config, const TensorSource& tensors,
                     const std::string& file);

}  // namespace fovea::model
