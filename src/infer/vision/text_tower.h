#pragma once

#include <optional>
#include <string>

#include "embed/sentence_model.h"
#include "open/towers.h"

namespace fovea::infer {

// The part of a model of images and texts that reads texts.
struct TextTower {
  model::Transformer transformer;
  TextFormat format;
  float scale = 0, bias = 0;  // see Towers
  bool sigmoid = false;
  bool canonical = false;          // texts are in lower case, without punctuation
  std::optional<int32_t> padding;  // the model reads texts with this token up to its context

  TokenizedText tokens(const std::string& text) const;
  // -> f32 [B, width of the projection]; differentiable
  Tensor vectors(const TokenBatch& batch) const;
};

// Makes the tower of towers.text, whose tokenizer is that of `format`; `folder` names it in errors.
TextTower text_tower(model::Towers towers, TextFormat format, const std::string& folder);

}  // namespace fovea::infer
