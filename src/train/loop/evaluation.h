#pragma once

#include <functional>

#include "loop/examples.h"
#include "metrics/predictions.h"
#include "parallel/communicator.h"

namespace fovea::train {

// Returns the predictions for the batches batch(0) to batch(count - 1); Predictions::choices stays
// empty unless the metrics of `task` need it. `ranks`: as in shared_evaluation.h.
infer::Predictions predict(const model::Transformer& model, DType compute,
                           const infer::EvaluationTask& task, int64_t count,
                           const std::function<Batch(int64_t n)>& batch,
                           Communicator* ranks = nullptr);
// Returns the predictions for the held-out part.
infer::Predictions predict(const model::Transformer& model, DType compute,
                           const infer::EvaluationTask& task, const Examples& examples);

}  // namespace fovea::train
