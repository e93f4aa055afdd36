#pragma once

// Weights of GGUF files that are packed as they are stored, see kernels/layout/blocks.h.

#include <vector>

#include "checkpoint/names.h"
#include "ops/packed.h"
#include "safetensors/tensor_source.h"

namespace fovea::model {

// Returns the format of a tensor's weights, packed as stored; unset if its type has no such format,
// or if its rows are not rows of the matrices of these shapes.
std::optional<WeightFormat> format_as_stored(const FileTensor& tensor, const StoredTensor& stored,
                                             const std::vector<Shape>& shapes);

// Returns the parts of a tensor with the given `shapes`, for which format_as_stored() returns a
// format. They are packed late.
std::vector<PackedWeight> blocks_from_file(const FileTensor& tensor, const StoredTensor& stored,
                                           const std::vector<Shape>& shapes,
                                           const TensorSource& file);

}  // namespace fovea::model
