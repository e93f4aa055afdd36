#pragma once

#include <string>
#include <vector>

#include "fovea/model/model.h"

namespace fovea::cli {

// Prints the log-probability of a text, token by token; with `candidates`, of each candidate as a
// continuation of the text.
void print_scores(const model::Model& model, const std::string& text,
                  const std::vector<std::string>& candidates, bool json);

}  // namespace fovea::cli
