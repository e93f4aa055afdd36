#pragma once

#include <optional>

#include "transformer/transformer.h"

namespace fovea::model {

// Returns the format of the parameter `name` if a model's weights are packed as `wanted`; unset =
// not packed. The matrices of the stacks and of the head are packed, including a token embedding
// that is also the head's matrix, and those of the input. A router is small and sensitive, so it
// stays f32; the matrices of pixels and spectrograms are bf16 or f32; the head's matrix has at
// least 8 bits.
std::optional<WeightFormat> packed_format(const Spec& spec, const std::string& name,
                                          const Parameter& parameter, WeightFormat wanted);

uint64_t weight_bytes(Transformer& model);  // memory of all parameters

// Converts the parameter to `format` and frees its float values.
void pack(Parameter& parameter, WeightFormat format, int64_t group = 32);

// Packs the parameters for which packed_format() returns a format and that are not packed already.
// They cannot be trained afterwards.
void pack(Transformer& model, WeightFormat format, int64_t group = 32);

// Prepares a model with packed weights for the training of its other parameters, such as adapters:
// packed parameters are not trainable, and their products are exact in training and in evaluation
// (see ops/packed.h).
void freeze_packed(Transformer& model);

}  // namespace fovea::model
