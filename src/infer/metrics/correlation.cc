#include "metrics/correlation.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::infer {
namespace {

std::vector<double> ranks(const std::vector<double>& x) {
  std::vector<size_t> order(x.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return x[a] < x[b]; });
  std::vector<double> rank(x.size());
  for (size_t begin = 0; begin < order.size();) {
    size_t end = begin + 1;
    while (end < order.size() && x[order[end]] == x[order[begin]]) ++end;
    for (size_t i = begin; i < end; ++i) rank[order[i]] = static_cast<double>(begin + end - 1) / 2;
    begin = end;
  }
  return rank;
}

}  // namespace

double mean_of(std::span<const double> x) {
  return std::accumulate(x.begin(), x.end(), 0.0) /
         static_cast<double>(std::max<size_t>(1, x.size()));
}

double pearson(const std::vector<double>& x, const std::vector<double>& y) {
  const double mean_x = mean_of(x), mean_y = mean_of(y);
  double both = 0, only_x = 0, only_y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - mean_x) * (y[i] - mean_y);
    only_x += (x[i] - mean_x) * (x[i] - mean_x);
    only_y += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return only_x > 0 && only_y > 0 ? both / std::sqrt(only_x * only_y) : 0;
}

double spearman(const std::vector<double>& x, const std::vector<double>& y) {
  return pearson(ranks(x), ranks(y));
}

}  // namespace fovea::infer
