#pragma once

#include <string>

namespace fovea::cli {

// Returns the output of `fovea --version`: the version with its commit, the instruction set used on
// this CPU, and the versions of the libraries.
std::string version_text();

}  // namespace fovea::cli
