#pragma once

#include <nlohmann/json.hpp>

#include "fovea/study/circuits.h"

namespace fovea::inspector {

// Return the results of fovea/study/circuits.h as the page and `fovea trace --json` show them;
// tokens with values are lists [id, value].
nlohmann::ordered_json neurons_json(const std::vector<std::vector<study::Neuron>>& layers);
nlohmann::ordered_json logit_attribution_json(const study::LogitAttribution& attribution);
nlohmann::ordered_json patched_json(const study::PatchedDifferences& differences);
nlohmann::ordered_json circuit_json(const study::HeadCircuit& circuit);
nlohmann::ordered_json rotary_json(const study::RotaryAngles& angles);

}  // namespace fovea::inspector
