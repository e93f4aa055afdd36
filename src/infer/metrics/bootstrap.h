#pragma once

// Intervals of metrics by resampling the texts (Efron and Tibshirani 1993).

#include <cstdint>
#include <functional>
#include <vector>

#include "fovea/core/options.h"
#include "fovea/infer/estimate.h"

namespace fovea::infer {

// A metric of the texts with these indices, of which some may occur several times.
using SampleMetric = std::function<double(const std::vector<int32_t>& texts)>;

// Returns the metric of all `count` texts, and percentiles 2.5 and 97.5 of the metric of `samples`
// samples. The samples depend only on `count` and the seed, so that the difference of two
// classifiers is that of paired texts. Does not depend on the number of threads.
Estimate bootstrap(int64_t count, int64_t samples, uint64_t seed, const SampleMetric& metric);

// Describes the fields of options that determine intervals.
void visit_bootstrap(int64_t& samples, OptionVisitor& visitor);

}  // namespace fovea::infer
