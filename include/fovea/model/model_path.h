#pragma once

#include <cstdint>
#include <string>

namespace fovea::model {

// Returns where a model is. If nothing has the path `name`, and it is the name OWNER/NAME or NAME
// of a model in the cache of the Hugging Face Hub, this is its directory in the cache:
// $HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub. Otherwise it is `name`.
std::string find_model(const std::string& name);

// Throws BadFile unless `path` exists. The message says how to get a model of the Hub.
void require_model(const std::string& path);

// Returns a hash of a .gguf file, or of the files in a model directory that determine its results.
// Reads these files completely. Throws BadFile if one cannot be read.
uint64_t model_fingerprint(const std::string& path, bool with_base = true);

// Returns whether config.json in the folder is that of a model that reads images in its prompts.
bool reads_images(const std::string& folder);

}  // namespace fovea::model
