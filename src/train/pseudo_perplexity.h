#pragma once

#include "fovea/evaluate.h"
#include "metrics/predictions.h"

namespace fovea {

using EvaluationProgress = std::function<bool(double fraction)>;

// Returns an encoder's predictions for each token of a text, given all other tokens of its window,
// from which the pseudo-perplexity follows (Salazar et al. 2020). Uses windows of at most `length`
// tokens, including special tokens, and `batch` copies of a window at a time; in each copy, a
// different token is masked.
Predictions predict_one_by_one(const Model& model, const std::vector<std::string>& data,
                               int64_t length, int64_t batch, const EvaluationProgress& progress);

}  // namespace fovea
