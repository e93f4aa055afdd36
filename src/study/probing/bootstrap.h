#pragma once

// Intervals of metrics by resampling the texts (Efron and Tibshirani 1993).

#include <cstdint>
#include <functional>
#include <vector>

#include "fovea/study/linear_probe.h"

namespace fovea::study {

// A metric of the texts with these indices, of which some may occur several times.
using SampleMetric = std::function<double(const std::vector<int32_t>& texts)>;

// Returns the metric of all `count` texts, and percentiles 2.5 and 97.5 of the metric of 1000
// samples. The samples depend only on `count` and the seed, so that the difference of two
// classifiers is that of paired texts.
ProbeEstimate bootstrap(int64_t count, uint64_t seed, const SampleMetric& metric);

}  // namespace fovea::study
