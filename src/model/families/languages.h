#pragma once

#include <optional>
#include <string>

namespace fovea::model {

// Returns the code of a language that is given by its code or one of its names, in any case.
std::optional<std::string> language_code(const std::string& language);
std::string language_name(const std::string& code);  // the code itself if it is unknown

}  // namespace fovea::model
