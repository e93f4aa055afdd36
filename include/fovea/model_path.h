#pragma once

#include <string>

namespace fovea {

// Returns where a model is. If nothing has the path `name`, and it is the name OWNER/NAME or NAME
// of a model in the cache of the Hugging Face Hub, this is its directory in the cache:
// $HF_HUB_CACHE, else $HF_HOME/hub, else ~/.cache/huggingface/hub. Otherwise it is `name`.
std::string find_model(const std::string& name);

// Throws BadFile unless `path` exists. The message says how to get a model of the Hub.
void require_model(const std::string& path);

}  // namespace fovea
