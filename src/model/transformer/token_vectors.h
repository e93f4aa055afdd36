#pragma once

#include "transformer/transformer.h"

namespace fovea::model {

// Returns the rows of an embedding of the model as a stack reads them, before token types and
// positions are added.   ids i32 [B, T] -> f32 [B, T, C] (f64 for f64)
Tensor token_vectors(const Transformer& model, const Tensor& ids, const Parameter& table);

}  // namespace fovea::model
