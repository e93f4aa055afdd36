#pragma once

#include <nlohmann/json.hpp>

#include "fovea/study/explain.h"

namespace fovea::inspector {

// Returns an explanation as the page and `fovea classify --explain --json` show it.
nlohmann::ordered_json explanation_json(const study::Explanation& explanation);

// Returns tokens as a list of {"id", "text", "special"}.
nlohmann::ordered_json tokens_json(const std::vector<study::InspectedToken>& tokens);

}  // namespace fovea::inspector
