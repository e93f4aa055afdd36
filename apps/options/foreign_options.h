#pragma once

#include <string>

namespace fovea::cli {

// What takes the place of an option of another program that people type from habit, in one
// sentence; empty if the option is not known.
std::string foreign_option(const std::string& typed);

}  // namespace fovea::cli
