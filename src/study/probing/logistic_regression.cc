#include "probing/logistic_regression.h"

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "probing/lbfgs.h"

namespace fovea::study {
namespace {

// log(1 + exp(z)) without overflow.
double softplus(double z) { return std::max(z, 0.0) + math::log(1 + math::exp(-std::abs(z))); }

// Returns -log p(label) of one row, and replaces its scores z by their gradient. A single score is
// that of the second of two classes.
double row_loss(std::vector<double>& z, int32_t label) {
  if (z.size() == 1) {
    const double loss = label == 1 ? softplus(-z[0]) : softplus(z[0]);
    z[0] = 1 / (1 + math::exp(-z[0])) - label;
    return loss;
  }
  const double most = *std::max_element(z.begin(), z.end()), own = z[static_cast<size_t>(label)];
  double sum = 0;
  for (double& each : z) sum += each = math::exp(each - most);
  for (double& each : z) each /= sum;
  z[static_cast<size_t>(label)] -= 1;
  return most + math::log(sum) - own;
}

// The loss of the rows with weights w, divided by their number, and its gradient.
struct Loss {
  const Features& features;
  const std::vector<int32_t>&rows, &labels;
  size_t outputs;
  double c;

  double operator()(const std::vector<double>& w, std::vector<double>& gradient) const {
    const auto width = static_cast<size_t>(features.width());
    const auto count = static_cast<double>(rows.size());
    std::fill(gradient.begin(), gradient.end(), 0.0);
    std::vector<double> z(outputs);
    double sum = 0, squares = 0;
    for (const int32_t row : rows) {
      for (size_t k = 0; k < outputs; ++k) {
        const double* const weights = w.data() + k * (width + 1);
        z[k] = features.dot(row, weights) + weights[width];
      }
      sum += row_loss(z, labels[static_cast<size_t>(row)]);
      for (size_t k = 0; k < outputs; ++k) {
        double* const g = gradient.data() + k * (width + 1);
        features.add(row, z[k], g);
        g[width] += z[k];
      }
    }
    for (double& each : gradient) each /= count;
    const double strength = 1 / (c * count);
    for (size_t i = 0; i < w.size(); ++i) {
      if (i % (width + 1) == width) continue;  // an intercept
      squares += w[i] * w[i];
      gradient[i] += strength * w[i];
    }
    return sum / count + strength * squares / 2;
  }
};

}  // namespace

int32_t LogisticRegression::predict(const Features& features, int64_t row) const {
  const int64_t outputs = std::ssize(weights) / (width + 1);
  int32_t best = 0;
  double most = 0;
  for (int64_t k = 0; k < outputs; ++k) {
    const double* const w = weights.data() + k * (width + 1);
    const double z = features.dot(row, w) + w[width];
    if (outputs == 1) return z > 0 ? 1 : 0;
    if (k > 0 && z <= most) continue;
    best = static_cast<int32_t>(k);
    most = z;
  }
  return best;
}

LogisticRegression fit_logistic_regression(const Features& features,
                                           const std::vector<int32_t>& rows,
                                           const std::vector<int32_t>& labels, int64_t classes,
                                           double c) {
  // The gradient of the mean loss; scikit-learn's default is 1e-4.
  constexpr double kTolerance = 1e-6;
  const int64_t outputs = classes == 2 ? 1 : classes;
  LogisticRegression model;
  model.width = features.width();
  model.weights.resize(static_cast<size_t>(outputs * (model.width + 1)));
  const Loss loss{features, rows, labels, static_cast<size_t>(outputs), c};
  model.converged = minimise(loss, kTolerance, model.weights);
  return model;
}

}  // namespace fovea::study
