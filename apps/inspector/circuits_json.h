#pragma once

#include <nlohmann/json.hpp>

#include "fovea/circuits.h"

namespace fovea::inspector {

// Return the results of fovea/circuits.h as the page and `fovea trace --json` show them; tokens
// with values are lists [id, value].
nlohmann::ordered_json neurons_json(const std::vector<std::vector<Neuron>>& layers);
nlohmann::ordered_json logit_attribution_json(const LogitAttribution& attribution);
nlohmann::ordered_json patched_json(const PatchedDifferences& differences);
nlohmann::ordered_json circuit_json(const HeadCircuit& circuit);
nlohmann::ordered_json rotary_json(const RotaryAngles& angles);

}  // namespace fovea::inspector
