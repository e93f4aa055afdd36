#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fovea/metrics.h"
#include "metrics/choices.h"

namespace fovea {

// The predictions of a model for some data. All metrics are computed from them (metrics.cc).
struct Predictions {
  double loss = 0;       // mean negative log-likelihood per label, in nats
  int64_t labels = 0;    // tokens or classes that were predicted
  int64_t bytes = 0;     // UTF-8 bytes of the predicted text; 0 = not applicable
  Choices choices = {};  // each label with the most likely output
  // Each translation with its reference; unset: nothing was translated.
  std::optional<std::vector<std::pair<std::string, std::string>>> translations = {};
  std::vector<double> rewards = {};                          // of written answers
  double answer_tokens = 0;                                  // mean length of these answers
  std::vector<std::pair<double, double>> similarities = {};  // pairs (similarity, human score)
};

// Returns the values of the metrics that apply to the predictions.
MetricValues values_of(const std::vector<Metric>& metrics, const Predictions& predictions);

}  // namespace fovea
