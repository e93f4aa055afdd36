#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "fovea/train/plan.h"

namespace fovea::cli {

// Formats the steps of a training on 1 to N hosts: as a table of 1, 2, 4, ... and N hosts, or all
// as JSON. `tokens`: of a step.
std::string hosts_text(const std::vector<train::HostsStep>& steps, double tokens);
nlohmann::ordered_json hosts_json(const std::vector<train::HostsStep>& steps);

}  // namespace fovea::cli
