#pragma once

#include <optional>

#include "model/transformer.h"

namespace fovea {

// How the parameter of this name is kept where a model's weights are packed as `wanted`: all that
// linear() multiplies is, also a token embedding that serves as the head. A router, small and
// decisive, stays f32; the head's matrix has at least 8 bits. Absent: not packed.
std::optional<WeightFormat> packed_format(const Spec& spec, const std::string& name,
                                          const Parameter& parameter, WeightFormat wanted);

// Packs a parameter's value, and lets go of it.
void pack(Parameter& parameter, WeightFormat format, int64_t group = 32);

// Packs all: afterwards the model can no longer be trained.
void pack(Transformer& model, WeightFormat format, int64_t group = 32);

}  // namespace fovea
