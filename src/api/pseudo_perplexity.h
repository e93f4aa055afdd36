#pragma once

#include "fovea/evaluate.h"

namespace fovea {

using EvaluationProgress = std::function<bool(double fraction)>;

// How well an encoder predicts each token of a text from all others around it (Salazar et al.
// 2020). Uses windows of at most `length` tokens, including special ones, with `batch` copies of a
// window at a time; each copy hides another token.
Evaluation pseudo_perplexity(const Model& model, const std::vector<std::string>& data,
                             int64_t length, int64_t batch, const EvaluationProgress& progress);

}  // namespace fovea
