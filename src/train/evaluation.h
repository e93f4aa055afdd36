#pragma once

#include <functional>

#include "metrics/predictions.h"
#include "train/examples.h"

namespace fovea {

// What a model predicts in `count` batches, of which `batch(n)` gives the n-th. Choices are kept
// for encoders and classifiers.
Predictions predict(const Transformer& model, DType compute, int64_t count,
                    const std::function<Batch(int64_t n)>& batch);
// Of the held-out part.
Predictions predict(const Transformer& model, DType compute, const Examples& examples);

}  // namespace fovea
