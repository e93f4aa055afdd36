#pragma once

// A model of pictures and texts: one folder with two Transformers, whose vectors are compared
// (CLIP: Radford et al. 2021; SigLIP: Zhai et al. 2023). config.json has a text_config and a
// vision_config.

#include <string>

#include "families/directory.h"

namespace fovea {

struct Towers {
  ModelFiles text, image;
  // The score of a picture and a text: exp(scale) * cosine + bias.
  float scale = 0, bias = 0;
  // Scores are logits of independent pairs; otherwise those of a softmax over texts or pictures.
  bool sigmoid = false;
  // Texts have padding up to the context, which the model reads.
  bool reads_padding = false;
};

// Returns whether config.json in the folder describes two such models.
bool has_towers(const std::string& folder);

// Throws the errors of open_model_files().
Towers open_towers(const std::string& folder, Weights weights, const Packing& packing);

}  // namespace fovea
