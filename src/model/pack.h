#pragma once

#include <optional>

#include "model/transformer.h"

namespace fovea {

// Returns the format of the parameter `name` if a model's weights are packed as `wanted`; empty =
// not packed. Covers all weights that linear() multiplies, including a token embedding used as the
// head. A router is small and sensitive, so it stays f32; the head's matrix has at least 8 bits.
std::optional<WeightFormat> packed_format(const Spec& spec, const std::string& name,
                                          const Parameter& parameter, WeightFormat wanted);

// Converts the parameter to `format` and frees its float values.
void pack(Parameter& parameter, WeightFormat format, int64_t group = 32);

// Packs all weights; afterwards the model cannot be trained.
void pack(Transformer& model, WeightFormat format, int64_t group = 32);

}  // namespace fovea
