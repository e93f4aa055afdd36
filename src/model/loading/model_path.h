#pragma once

#include "fovea/model/model_path.h"

namespace fovea::model {

// Throws BadFile: `path` is neither a model's directory nor a .gguf file. Names of the Hugging Face
// Hub and files of pickled tensors get a hint.
[[noreturn]] void refuse_path(const std::string& path);

}  // namespace fovea::model
