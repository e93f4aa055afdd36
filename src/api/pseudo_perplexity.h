#pragma once

#include "fovea/evaluate.h"
#include "metrics/predictions.h"

namespace fovea {

using EvaluationProgress = std::function<bool(double fraction)>;

// What an encoder predicts for each token of a text from all others around it: its
// pseudo-perplexity (Salazar et al. 2020). Uses windows of at most `length` tokens, including
// special ones, with `batch` copies of a window at a time; each copy hides another token.
Predictions predict_one_by_one(const Model& model, const std::vector<std::string>& data,
                               int64_t length, int64_t batch, const EvaluationProgress& progress);

}  // namespace fovea
