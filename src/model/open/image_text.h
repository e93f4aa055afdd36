#pragma once

// Models that read texts with images: one folder with an encoder of images, a connector and a
// decoder (LLaVA: Liu et al. 2023; Idefics3: Laurençon et al. 2024; SmolVLM: Marafioti et al.
// 2025). config.json has a text_config and a vision_config.

#include <memory>
#include <string>

#include "loading/image_encoder.h"
#include "loading/loading.h"

namespace fovea::model {

// Returns whether a config.json is that of such a model.
bool is_image_text_config(const nlohmann::json& config);
// Returns whether it is that of a model whose encoder of images fovea does not have, so that only
// its decoder is opened.
bool is_text_part_config(const nlohmann::json& config);

// The decoder of such a folder, as the model of a family: its config, and its tensors.
struct TextConfig {
  const Family* family;
  nlohmann::json json;
};
TextConfig text_config(const nlohmann::json& config, const std::string& folder);
std::shared_ptr<const TensorSource> text_tensors(const nlohmann::json& config,
                                                 const std::string& folder);

// Opens the encoder of images and the connector for the decoder `text`. Throws the errors of
// open_model_files() and of ImageProcessor::open().
std::shared_ptr<ImageEncoder> open_image_encoder(const std::string& folder, const Spec& text,
                                                 Weights weights, const Packing& packing);

}  // namespace fovea::model
