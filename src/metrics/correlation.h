#pragma once

#include <vector>

namespace fovea {

// Of two lists of one length: 0 where one of them is constant.
double pearson(const std::vector<double>& x, const std::vector<double>& y);
// Pearson's of the ranks; equal values share the mean of their ranks.
double spearman(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace fovea
