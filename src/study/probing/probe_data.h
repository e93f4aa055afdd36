#pragma once

// The labelled texts of a probe, and how its predictions are scored.

#include <string>
#include <vector>

#include "fovea/study/linear_probe.h"
#include "probing/cross_validation.h"

namespace fovea::study {

// The labelled texts; of pairs, texts 2i and 2i + 1.
struct ProbeData {
  std::vector<std::string> texts, names;
  ProbeFolds folds;
  bool pairs = false;
};
// Throws as linear_probe().
ProbeData read_probe_data(const ProbeOptions& options);

// What texts are scored by: their fraction with right labels, macro F1, R2 or Pearson's
// correlation.
enum class ProbeMetric { accuracy, f1, r2, pearson };

// Returns the metric of the texts with these indices.
double score_of(ProbeMetric metric, const ProbeTargets& labelled, const ProbeTargets& predicted,
                const std::vector<int32_t>& texts);

// Returns the accuracy of always predicting the most frequent label, or those that most texts have;
// 0 for numbers.
double majority_of(const ProbeTargets& labelled, int64_t texts);

}  // namespace fovea::study
