#pragma once

// Linear regression with L2 regularisation, as scikit-learn's Ridge.

#include <cstdint>
#include <vector>

#include "probing/features.h"

namespace fovea::study {

struct RidgeRegression {
  std::vector<double> weights;  // [width]
  double intercept = 0;
  bool converged = false;  // the residual of the equations vanished up to the tolerance

  double predict(const Features& features, int64_t row) const;
};

// Returns the minimum of sum over the rows of (y - w x - b)^2 + alpha |w|^2. The rows are those of
// `features` with indices `rows`; y [all rows of features]. Computed in double on the calling
// thread.
RidgeRegression fit_ridge_regression(const Features& features, const std::vector<int32_t>& rows,
                                     const std::vector<double>& y, double alpha);

}  // namespace fovea::study
