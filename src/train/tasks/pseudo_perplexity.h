#pragma once

#include <functional>
#include <string>
#include <vector>

#include "fovea/model/model.h"
#include "metrics/predictions.h"

namespace fovea {
class Communicator;
}

namespace fovea::train {

using EvaluationProgress = std::function<bool(double fraction)>;

// How a text is read: windows of `length` tokens, of which the first `most` are; 0 = all.
struct TextWindows {
  int64_t length = 0, most = 0;
  Communicator* ranks = nullptr;  // see shared_evaluation.h
};

// Returns an encoder's predictions for each token of a text, given all other tokens of its window,
// from which the pseudo-perplexity follows (Salazar et al. 2020). The length of windows includes
// special tokens. Uses `batch` copies of a window at a time; in each copy, a
// different token is masked.
infer::Predictions predict_one_by_one(const model::Model& model,
                                      const std::vector<std::string>& data,
                                      const TextWindows& windows, int64_t batch,
                                      const EvaluationProgress& progress);

}  // namespace fovea::train
