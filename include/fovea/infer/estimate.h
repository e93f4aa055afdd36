#pragma once

namespace fovea::infer {

// A metric and its 95% interval: percentiles 2.5 and 97.5 of bootstrap samples (Efron and
// Tibshirani 1993) of the texts, pairs or queries. The interval does not contain the variation
// among training sets.
struct Estimate {
  double value = 0, low = 0, high = 0;
};

}  // namespace fovea::infer
