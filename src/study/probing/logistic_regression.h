#pragma once

// Multinomial logistic regression with L2 regularisation, the classifier of scikit-learn's
// LogisticRegression with its default solver.

#include <cstdint>
#include <vector>

#include "probing/features.h"

namespace fovea::study {

struct LogisticRegression {
  int64_t width = 0;
  // One row of weights and an intercept per class, or for two classes a single row for the second
  // one: [classes or 1, width + 1]
  std::vector<double> weights;
  bool converged = false;  // the gradient vanished up to the tolerance

  // Returns the most likely class of a row.
  int32_t predict(const Features& features, int64_t row) const;
};

// Returns the minimum of |W|^2 / 2 + C * sum over the rows of -log p(label), where the intercepts
// are not in |W|. The rows are those of `features` with indices `rows`; labels [all rows of
// features] are in [0, classes). Computed in double on the calling thread.
LogisticRegression fit_logistic_regression(const Features& features,
                                           const std::vector<int32_t>& rows,
                                           const std::vector<int32_t>& labels, int64_t classes,
                                           double c);

}  // namespace fovea::study
