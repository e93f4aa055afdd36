#pragma once

// The order of the heads of gated_delta layers in files of qwen35: neighbouring heads read
// different key heads (DeltaSpec::tiled).

#include <optional>
#include <string>

#include "fovea/model/spec.h"
#include "tensor/tensor.h"

namespace fovea::model {

// Returns the Spec with tiled heads; none if its heads have no other order or are tiled already.
std::optional<Spec> with_tiled_heads(const Spec& spec);

// Whether a parameter of these layers has a part for each head.
bool has_delta_heads(const std::string& name);
// Returns a parameter in f32 with its heads in tiled order; the others are returned as they are.
Tensor with_tiled_heads(const std::string& name, const Tensor& x, const DeltaSpec& delta);

}  // namespace fovea::model
