#pragma once

// The linear models of one fold: a classifier, a classifier of each label against the others, or a
// regression.

#include <optional>
#include <vector>

#include "fovea/model/spec.h"
#include "probing/logistic_regression.h"
#include "probing/ridge_regression.h"

namespace fovea::study {

// What a probe predicts.
struct ProbeTargets {
  model::ProblemType problem = model::ProblemType::single_label;  // never automatic
  int64_t classes = 0;
  std::vector<int32_t> labels = {};  // of each text; of multi_label 0 or 1: [texts, classes]
  std::vector<double> numbers = {};  // regression: of each text
};

class FittedProbe {
 public:
  // Fits the models to the rows with indices `rows`. `c` is the inverse strength of the
  // regularisation; of a regression, alpha = 1 / c.
  FittedProbe(const Features& features, const std::vector<int32_t>& rows,
              const ProbeTargets& targets, double c);

  bool converged() const;
  // Writes the prediction for a row.
  void predict(const Features& features, int64_t row, ProbeTargets& to) const;
  // Returns how good the prediction for a row is: the number of right labels, or minus the squared
  // error.
  double score(const Features& features, int64_t row, const ProbeTargets& targets) const;

 private:
  std::vector<LogisticRegression> classifiers_;
  std::optional<RidgeRegression> regression_;
};

}  // namespace fovea::study
