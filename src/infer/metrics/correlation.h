#pragma once

#include <span>
#include <vector>

namespace fovea::infer {

double mean_of(std::span<const double> x);  // 0 without numbers
// Returns Pearson's correlation of two lists of equal length; 0 if one of them is constant.
double pearson(const std::vector<double>& x, const std::vector<double>& y);
// Returns Pearson's correlation of the ranks; equal values share the mean of their ranks.
double spearman(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace fovea::infer
