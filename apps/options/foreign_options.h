#pragma once

#include <string>

namespace fovea::cli {

// Returns a sentence that names fovea's equivalent of an option of another program, such as
// --resume; empty if the option is not known.
std::string foreign_option(const std::string& typed);

}  // namespace fovea::cli
