#pragma once

// The parts of evaluate() that need no translations.

#include <functional>
#include <string>
#include <vector>

#include "fovea/infer/metrics.h"
#include "fovea/train/train.h"
#include "metrics/predictions.h"
#include "tasks/pseudo_perplexity.h"

namespace fovea::train {

// Sets the results that follow from the predictions.
void add_metrics(infer::Evaluation& result, const infer::EvaluationTask& task,
                 const infer::Predictions& found);

// Passes the fraction of `n` of `count` steps to the callback. Throws Failed if it returns false.
void report_progress(const EvaluationProgress& progress, int64_t n, int64_t count);

// Predicts each token of text files but the first, in consecutive windows. A length of 0 is the
// context.
infer::Evaluation evaluate_next_tokens(const model::Model& model,
                                       const std::vector<std::string>& data,
                                       const TextWindows& windows,
                                       const EvaluationProgress& progress);
// Returns the results of predict_one_by_one().
infer::Evaluation evaluate_one_by_one(const model::Model& model,
                                      const std::vector<std::string>& data,
                                      const TextWindows& windows, int64_t batch,
                                      const EvaluationProgress& progress);
// Evaluates as in training, but on all data; `translate` may add translations to the predictions.
infer::Evaluation evaluate_by_task(const model::Model& model, const TrainOptions& options,
                                   const EvaluationProgress& progress,
                                   const std::function<void(infer::Predictions&)>& translate);

}  // namespace fovea::train
