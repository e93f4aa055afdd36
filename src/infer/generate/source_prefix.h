#pragma once

#include <string>

#include "fovea/translate.h"

namespace fovea {

// Returns the text that is prepended to every source: that of the options or, if they name a task,
// that of the checkpoint.
std::string source_prefix_of(const Model& model, const TranslateOptions& options);

}  // namespace fovea
