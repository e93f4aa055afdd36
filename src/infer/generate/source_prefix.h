#pragma once

#include <string>

#include "fovea/infer/translate.h"

namespace fovea::infer {

// Returns the text that is prepended to every source: that of the options or, if they name a task,
// that of the checkpoint.
std::string source_prefix_of(const model::Model& model, const TranslateOptions& options);

}  // namespace fovea::infer
