#pragma once

// Marian's own checkpoints: an .npz file with the weights and, in "special:model.yml", the options
// of the training.

#include "loading/loading.h"

namespace fovea::model {

// Returns whether a directory has an .npz file and no config.json.
bool is_marian_folder(const std::string& path);

// Opens such a directory. Of several .npz files, the one that decoder.yml names is read. Throws
// Unsupported, naming the option, for models of another type than transformer with self-attention,
// tied embeddings and sinusoidal positions.
ModelFiles open_marian_files(const std::string& path, const Loading& loading);

}  // namespace fovea::model
