#pragma once

#include "fovea/evaluate.h"

namespace fovea {

using EvaluationProgress = std::function<bool(double fraction)>;

// How well an encoder tells each token of a text from all others around it (Salazar et al. 2020).
// Windows of at most `length` tokens, special ones included, `batch` copies of one at a time; in
// each copy another token is hidden.
Evaluation pseudo_perplexity(const Model& model, const std::vector<std::string>& data,
                             int64_t length, int64_t batch, const EvaluationProgress& progress);

}  // namespace fovea
