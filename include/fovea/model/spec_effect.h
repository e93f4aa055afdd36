#pragma once

#include <functional>
#include <string>

#include "fovea/model/spec.h"

namespace fovea::model {

// Returns the path of a field, such as "decoder.norm.alpha", if its value has no effect on the
// model: every other value gives the same validated Spec. Returns "" for other fields, also if the
// Spec is invalid. `used_of`: returns what is used of a Spec, instead of the validated Spec, as
// text.
std::string path_without_effect(const Spec& spec, const std::string& field,
                                const std::function<std::string(const Spec&)>& used_of = {});

}  // namespace fovea::model
