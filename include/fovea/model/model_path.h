#pragma once

#include <cstdint>
#include <string>

namespace fovea::model {

// Throws BadFile unless `path` exists. The message says how to get a model of the Hub.
void require_model(const std::string& path);

// Returns a hash of a .gguf file, or of the files in a model directory that determine its results.
// Reads these files completely. Throws BadFile if one cannot be read.
uint64_t model_fingerprint(const std::string& path, bool with_base = true);

// Returns whether config.json in the folder is that of a model that reads images in its prompts.
bool reads_images(const std::string& folder);

}  // namespace fovea::model
