#include "probing/fitted_probe.h"

#include <algorithm>

namespace fovea::study {
namespace {

// Returns column k of labels [texts, classes].
std::vector<int32_t> column_of(const ProbeTargets& targets, int64_t k) {
  std::vector<int32_t> column;
  for (int64_t i = k; i < std::ssize(targets.labels); i += targets.classes)
    column.push_back(targets.labels[static_cast<size_t>(i)]);
  return column;
}

// A label that all texts have, or none, needs no classifier: its score is the intercept.
LogisticRegression constant(int64_t width, bool present) {
  LogisticRegression model{width, std::vector<double>(static_cast<size_t>(width + 1)), true};
  model.weights.back() = present ? 1 : -1;
  return model;
}

}  // namespace

FittedProbe::FittedProbe(const Features& features, const std::vector<int32_t>& rows,
                         const ProbeTargets& targets, double c) {
  if (targets.problem == model::ProblemType::regression) {
    regression_ = fit_ridge_regression(features, rows, targets.numbers, 1 / c);
    return;
  }
  if (targets.problem == model::ProblemType::single_label) {
    classifiers_.push_back(
        fit_logistic_regression(features, rows, targets.labels, targets.classes, c));
    return;
  }
  for (int64_t k = 0; k < targets.classes; ++k) {
    const std::vector<int32_t> column = column_of(targets, k);
    const auto present = std::count_if(rows.begin(), rows.end(), [&](int32_t row) {
      return column[static_cast<size_t>(row)] != 0;
    });
    classifiers_.push_back(present == 0 || present == std::ssize(rows)
                               ? constant(features.width(), present > 0)
                               : fit_logistic_regression(features, rows, column, 2, c));
  }
}

bool FittedProbe::converged() const {
  if (regression_) return regression_->converged;
  return std::all_of(classifiers_.begin(), classifiers_.end(),
                     [](const LogisticRegression& model) { return model.converged; });
}

void FittedProbe::predict(const Features& features, int64_t row, ProbeTargets& to) const {
  if (regression_) {
    to.numbers[static_cast<size_t>(row)] = regression_->predict(features, row);
    return;
  }
  const int64_t count = std::ssize(classifiers_);
  for (int64_t k = 0; k < count; ++k)
    to.labels[static_cast<size_t>(row * count + k)] =
        classifiers_[static_cast<size_t>(k)].predict(features, row);
}

double FittedProbe::score(const Features& features, int64_t row,
                          const ProbeTargets& targets) const {
  if (regression_) {
    const double error =
        regression_->predict(features, row) - targets.numbers[static_cast<size_t>(row)];
    return -error * error;
  }
  const int64_t count = std::ssize(classifiers_);
  double right = 0;
  for (int64_t k = 0; k < count; ++k)
    right += classifiers_[static_cast<size_t>(k)].predict(features, row) ==
             targets.labels[static_cast<size_t>(row * count + k)];
  return right;
}

}  // namespace fovea::study
