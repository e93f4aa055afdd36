#include "probing/ridge_regression.h"

#include <cmath>

namespace fovea::study {
namespace {

using Numbers = std::vector<double>;

double product(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void add_multiple(Numbers& a, double factor, const Numbers& b) {
  for (size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
}

// The rows X minus their mean m, without computing them: the rows may be sparse.
struct CentredRows {
  const Features& features;
  const std::vector<int32_t>& rows;
  Numbers mean;

  CentredRows(const Features& of, const std::vector<int32_t>& chosen)
      : features(of), rows(chosen), mean(static_cast<size_t>(of.width())) {
    for (const int32_t row : rows)
      features.add(row, 1 / static_cast<double>(rows.size()), mean.data());
  }

  // Returns (X - m)^T t.   t [rows] -> [width]
  Numbers transposed_times(const Numbers& t) const {
    Numbers y(mean.size());
    double sum = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      features.add(rows[i], t[i], y.data());
      sum += t[i];
    }
    add_multiple(y, -sum, mean);
    return y;
  }

  // Returns (X - m) w.   w [width] -> [rows]
  Numbers times(const Numbers& w) const {
    const double shift = product(mean, w);
    Numbers t;
    for (const int32_t row : rows) t.push_back(features.dot(row, w.data()) - shift);
    return t;
  }
};

}  // namespace

double RidgeRegression::predict(const Features& features, int64_t row) const {
  return features.dot(row, weights.data()) + intercept;
}

// Solves ((X - m)^T (X - m) + alpha I) w = (X - m)^T (y - mean y) by conjugate gradients (Hestenes
// and Stiefel 1952, algorithm 3:1); the intercept is mean y - w m.
RidgeRegression fit_ridge_regression(const Features& features, const std::vector<int32_t>& rows,
                                     const std::vector<double>& y, double alpha) {
  constexpr double kTolerance = 1e-10;  // of the residual, relative to the right side
  const CentredRows x(features, rows);
  double mean = 0;
  for (const int32_t row : rows) mean += y[static_cast<size_t>(row)];
  mean /= static_cast<double>(rows.size());
  Numbers centred;
  for (const int32_t row : rows) centred.push_back(y[static_cast<size_t>(row)] - mean);

  RidgeRegression model;
  model.weights.resize(x.mean.size());
  Numbers residual = x.transposed_times(centred), direction = residual;
  double squares = product(residual, residual);
  const double enough = kTolerance * kTolerance * squares;
  // In exact arithmetic, as many steps as there are weights suffice.
  const int64_t most = 4 * features.width() + 100;
  for (int64_t step = 0; step < most && squares > enough; ++step) {
    Numbers image = x.transposed_times(x.times(direction));
    add_multiple(image, alpha, direction);
    const double length = squares / product(direction, image);
    add_multiple(model.weights, length, direction);
    add_multiple(residual, -length, image);
    const double next = product(residual, residual);
    for (size_t i = 0; i < direction.size(); ++i)
      direction[i] = residual[i] + next / squares * direction[i];
    squares = next;
  }
  model.converged = squares <= enough;
  model.intercept = mean - product(model.weights, x.mean);
  return model;
}

}  // namespace fovea::study
