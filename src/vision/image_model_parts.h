#pragma once

#include <optional>

#include "embed/text_format.h"
#include "fovea/image_model.h"
#include "image/processor.h"
#include "model/transformer.h"

namespace fovea {

// The part of a model of images and texts that reads texts.
struct TextTower {
  Transformer transformer;
  TextFormat format;
  float scale = 0, bias = 0;  // see Towers
  bool sigmoid = false;
  bool canonical = false;          // texts are in lower case, without punctuation
  std::optional<int32_t> padding;  // the model reads texts with this token up to its context
};

struct ImageModel::Parts {
  std::string folder;
  Transformer transformer;
  ImageProcessor processor;
  ScoreFunction function = ScoreFunction::softmax;
  std::vector<std::string> labels;
  std::vector<std::string> warnings;
  std::optional<TextTower> text;

  // The last hidden states of pictures: pixels [B, 3, S, S] -> [B, T, C]
  Tensor hidden(const Tensor& pixels) const;
  // The vectors of the states -> f32 [B, width]
  Tensor vectors(const Tensor& hidden) const;
};

// Embeddings of `count` pictures or texts, without values.
Embeddings empty_embeddings(size_t count, int64_t width);
void scale_to_unit(std::vector<float>& values, int64_t width);  // each vector of [count, width]

}  // namespace fovea
