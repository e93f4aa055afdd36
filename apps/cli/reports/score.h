#pragma once

#include <string>
#include <vector>

#include "fovea/model.h"

namespace fovea::cli {

// Prints how likely a model finds a text, token by token; or, with candidates, each of these
// behind the text.
void print_scores(const Model& model, const std::string& text,
                  const std::vector<std::string>& candidates, bool json);

}  // namespace fovea::cli
