#pragma once

#include <nlohmann/json.hpp>

#include "fovea/explain.h"

namespace fovea::inspector {

// Returns an explanation as the page and `fovea classify --explain --json` show it.
nlohmann::ordered_json explanation_json(const Explanation& explanation);

// Returns tokens as a list of {"id", "text", "special"}.
nlohmann::ordered_json tokens_json(const std::vector<InspectedToken>& tokens);

// Returns the options of an explanation that a request sets, under the names of the fields. Throws
// InvalidArgument, naming the field, if a value has another type or is out of range; the sizes of
// a request are limited further, to kMostSteps.
ExplainOptions explain_options(const nlohmann::ordered_json& asked);

constexpr int64_t kMostSteps = 1000;  // integration steps and random choices of a request

}  // namespace fovea::inspector
