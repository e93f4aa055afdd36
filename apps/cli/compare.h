#pragma once

#include <string>
#include <vector>

namespace fovea::cli {

// `fovea eval MODEL DATA --against FULL [--dtype NAME]`: returns the exit code. `precision` is an
// index into the choices of kWeightPrecisions.
int run_compare(const std::string& model, const std::string& against, int precision,
                const std::vector<std::string>& data, bool json);

}  // namespace fovea::cli
