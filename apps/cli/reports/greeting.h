#pragma once

#include <string>

namespace fovea::cli {

// Returns what `fovea` without arguments prints: what this machine can do, commands to try, and the
// models on the disk.
std::string greeting();

}  // namespace fovea::cli
