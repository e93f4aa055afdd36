#pragma once

#include "fovea/model/spec.h"
#include "nn/linear.h"

namespace fovea::model {

// Turns the output of an encoder of images into embeddings of a decoder: leaves out the first
// tokens, joins squares of neighbouring patches (pixel shuffle: Shi et al. 2016, 3.2; Laurençon et
// al. 2024, 3.3), and applies one linear layer, or two with an activation between them (Liu et al.
// 2023).
struct Connector {
  int64_t skipped = 0;  // class tokens that are left out
  int64_t square = 1;   // patches on a side of a square that becomes one token
  Linear first, second;
  Activation activation = Activation::gelu;

  // Returns the number of tokens for `patches` patches, a square of them.
  int64_t tokens(int64_t patches) const { return patches / (square * square); }
  // hidden [B, skipped + patches, C] -> f32 [B * tokens, width of the decoder]
  Tensor operator()(const Tensor& hidden) const;
};

}  // namespace fovea::model
