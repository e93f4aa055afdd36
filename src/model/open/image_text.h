#pragma once

// Models that read texts with images: one folder with an encoder of images, a connector and a
// decoder (LLaVA: Liu et al. 2023; Idefics3: Laurençon et al. 2024; SmolVLM: Marafioti et al.
// 2025). config.json has a text_config and a vision_config.

#include <memory>
#include <optional>
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

// Writes such a model into an existing folder, without its tokenizer: that of the folder `from`
// with the weights of the decoder and of the connector, in fp32. The encoder and the names of the
// tensors stay as they are. `end` ends texts. Throws Unsupported if `from` has no tensor for a
// weight.
void save_image_text(const std::string& folder, const std::string& from, Transformer& text,
                     const Connector& connector, const Origin& origin, std::optional<int32_t> end);

// Returns the name of the decoder's part in the modules of transformers 5, in the place of "model":
// "model.language_model" in LLaVA.
std::string decoder_module(const std::string& folder);

}  // namespace fovea::model
