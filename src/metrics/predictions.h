#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "fovea/figures.h"
#include "metrics/choices.h"

namespace fovea {

// What a model predicted for some data. Every figure is a function of it (figures.cc).
struct Predictions {
  double loss = 0;       // mean negative log-likelihood of a label, in nats
  int64_t labels = 0;    // tokens or classes that were predicted
  int64_t bytes = 0;     // of the text that `labels` cover; 0 = not applicable
  Choices choices = {};  // each label and the most likely output
  // Each with its reference; unset: nothing was translated.
  std::optional<std::vector<std::pair<std::string, std::string>>> translations = {};
  std::vector<std::pair<double, double>> similarities = {};  // each with the human score
};

// The figures that have a value.
FigureValues values_of(const std::vector<Figure>& figures, const Predictions& predictions);

}  // namespace fovea
