#pragma once

#include <string>
#include <vector>

#include "options/options.h"

namespace fovea::cli {

// Throws UsageError if one of these options is in the command, but not `used`; `needed` names what
// it needs. The environment and files with options may set options that a command does not use.
void require(const OptionTable& table, bool used, const std::vector<std::string>& names,
             const std::string& needed);

// Throws UsageError if the command has another option than these, the common ones, and those in the
// section of the option `action`, which names the action in the error.
void allow_only(const OptionTable& table, const std::string& action,
                const std::vector<std::string>& names);

}  // namespace fovea::cli
