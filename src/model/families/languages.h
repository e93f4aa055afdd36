#pragma once

#include <optional>
#include <string>

#include "checkpoint/family.h"

namespace fovea::model {

// Returns the code of a language that is given by its code or one of its names, in any case.
std::optional<std::string> language_code(const std::string& language);
std::string language_name(const std::string& code);  // the code itself if it is unknown

// Returns the text before every source with which a family of models is trained to translate
// between two languages, given by their English names; empty for other families.
std::string translation_prefix(const Family& family, const std::string& source,
                               const std::string& target);

}  // namespace fovea::model
