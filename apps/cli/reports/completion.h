#pragma once

#include <string>
#include <vector>

#include "cli/reports/manual.h"

namespace fovea::cli {

// Returns the script that completes verbs, options and values in bash, zsh or fish. Throws
// UsageError for other shells.
std::string completion_script(const std::string& shell, const std::vector<VerbDescription>& verbs);

}  // namespace fovea::cli
