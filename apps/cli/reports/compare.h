#pragma once

#include <string>
#include <vector>

#include "fovea/model/model.h"

namespace fovea::cli {

// Runs `fovea eval MODEL DATA --against FULL` and returns the exit code.
int run_compare(const model::Model& model, const std::string& against,
                const std::vector<std::string>& data, bool json);

}  // namespace fovea::cli
