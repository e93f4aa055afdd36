#pragma once

#include <string>

#include "fovea/spec.h"

namespace fovea {

// Returns the path of a field, such as "decoder.norm.alpha", if its value has no effect on the
// model: every other value gives the same validated Spec. Returns "" for other fields, also if the
// Spec is invalid.
std::string path_without_effect(const Spec& spec, const std::string& field);

}  // namespace fovea
