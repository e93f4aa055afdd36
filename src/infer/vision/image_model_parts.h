#pragma once

#include <optional>

#include "families/registry.h"
#include "fovea/infer/image_model.h"
#include "image/processor.h"
#include "vision/text_tower.h"

namespace fovea::infer {

struct ImageModel::Parts {
  std::string folder;
  const model::Family* family = nullptr;  // of the encoder
  model::Transformer transformer;
  media::ImageProcessor processor;
  ScoreFunction function = ScoreFunction::softmax;
  std::vector<std::string> labels;
  std::vector<std::string> warnings;
  std::optional<TextTower> text;

  // The last hidden states of images: pixels [B, 3, S, S] -> [B, T, C]
  Tensor hidden(const Tensor& pixels) const;
  // The vectors of the states -> f32 [B, width]
  Tensor vectors(const Tensor& hidden) const;
};

// Whether the head computes the vectors of images.
bool has_projected_vectors(const model::Spec& spec);
// Embeddings of `count` images or texts, without values.
Embeddings empty_embeddings(size_t count, int64_t width);
void scale_to_unit(std::vector<float>& values, int64_t width);  // each vector of [count, width]

}  // namespace fovea::infer
