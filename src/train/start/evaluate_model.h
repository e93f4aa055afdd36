#pragma once

// The parts of evaluate() that need no translations.

#include <functional>
#include <string>
#include <vector>

#include "fovea/evaluate.h"
#include "fovea/train.h"
#include "metrics/predictions.h"
#include "tasks/pseudo_perplexity.h"

namespace fovea {

// Sets the results that follow from the predictions.
void add_metrics(Evaluation& result, const EvaluationTask& task, const Predictions& found);

// Passes the fraction of `n` of `count` steps to the callback. Throws Failed if it returns false.
void report_progress(const EvaluationProgress& progress, int64_t n, int64_t count);

// Predicts each token of text files but the first, in consecutive windows. A length of 0 is the
// context.
Evaluation evaluate_next_tokens(const Model& model, const std::vector<std::string>& data,
                                const TextWindows& windows, const EvaluationProgress& progress);
// Returns the results of predict_one_by_one().
Evaluation evaluate_one_by_one(const Model& model, const std::vector<std::string>& data,
                               const TextWindows& windows, int64_t batch,
                               const EvaluationProgress& progress);
// Evaluates as in training, but on all data; `translate` may add translations to the predictions.
Evaluation evaluate_by_task(const Model& model, const TrainOptions& options,
                            const EvaluationProgress& progress,
                            const std::function<void(Predictions&)>& translate);

}  // namespace fovea
