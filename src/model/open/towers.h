#pragma once

// A model of images and texts: one folder with two Transformers, whose vectors are compared
// (CLIP: Radford et al. 2021; SigLIP: Zhai et al. 2023). config.json has a text_config and a
// vision_config.

#include <string>

#include "loading/loading.h"

namespace fovea::model {

struct Towers {
  ModelFiles text, image;
  // The score of an image and a text: exp(scale) * cosine + bias.
  float scale = 0, bias = 0;
  // Scores are logits of independent pairs; otherwise those of a softmax over texts or images.
  bool sigmoid = false;
  // Texts have padding up to the context, which the model reads.
  bool reads_padding = false;
};

// Returns whether config.json in the folder describes two such models.
bool has_towers(const std::string& folder);

// Throws the errors of open_model_files().
Towers open_towers(const std::string& folder, Weights weights, const Packing& packing);

// Whether a Spec is that of two new models: its encoder reads images and its decoder texts, with
// vectors of the width head.projection.
bool describes_towers(const Spec& spec);
// Returns the Specs of the models of images and of texts.
std::pair<Spec, Spec> tower_specs(const Spec& spec);
// Returns new models of such a Spec, which has a vocabulary: those of CLIP or, if the encoder has
// no class token, of SigLIP. The weights depend on the seed.
Towers new_towers(const Spec& spec, uint64_t seed);

// The token ids that begin and end texts, and those of padding, in config.json.
struct TowerTokens {
  std::optional<int32_t> first, end, padding;
};
// Writes config.json and the weights into an existing folder, each atomically.
void save_towers(const std::string& folder, Towers& towers, const TowerTokens& tokens);

}  // namespace fovea::model
