// The gradient that passes through the softmax of scores, with and without the scale.

#include <algorithm>
#include <cmath>

#include "base/math.h"
#include "fovea/core/random.h"
#include "lab/conclude.h"
#include "lab/experiments.h"

namespace fovea::lab {
namespace {

constexpr int64_t kKeys = 16;

// Returns softmax of the scores of a random query with kKeys random keys.
std::vector<double> random_weights(int64_t width, double scale, Random& random) {
  std::vector<double> query, scores;
  for (int64_t c = 0; c < width; ++c) query.push_back(random.normal());
  double most = -1e300, sum = 0;
  for (int64_t key = 0; key < kKeys; ++key) {
    double score = 0;
    for (const double q : query) score += q * double{random.normal()};
    scores.push_back(score * scale);
    most = std::max(most, scores.back());
  }
  for (double& s : scores) sum += s = math::exp(s - most);
  for (double& s : scores) s /= sum;
  return scores;
}

// The Frobenius norm of the Jacobian diag(p) - p p^T.
double jacobian_norm(const std::vector<double>& p) {
  double squares = 0;
  for (size_t i = 0; i < p.size(); ++i)
    for (size_t j = 0; j < p.size(); ++j) {
      const double entry = (i == j ? p[i] : 0) - p[i] * p[j];
      squares += entry * entry;
    }
  return std::sqrt(squares);
}

Readings passed_gradient(const Trial& t) {
  const int64_t rows = t.times(1000, 10000);
  const double scale = t.arm == "scaled" ? 1 / std::sqrt(t.x) : 1;
  Random random(t.seed, Stream::sampling);
  double sum = 0;
  for (int64_t i = 0; i < rows; ++i)
    sum += jacobian_norm(random_weights(static_cast<int64_t>(t.x), scale, random));
  return {{t.arm, t.x, sum / static_cast<double>(rows)}};
}

std::vector<Conclusion> decide_saturation(const Table& table) {
  const LabPoint &scaled = table.last("scaled"), &unscaled = table.last("unscaled");
  constexpr double kTimes = 4;
  return {conclude("CLM-04: unscaled scores saturate the softmax, and its gradient vanishes",
                   {{"the widest keys", std::min(above(scaled, unscaled, kTimes),
                                                 above(table.first("unscaled"), unscaled))}},
                   course(table, "scaled") + "; " + course(table, "unscaled"))};
}

}  // namespace

Experiment saturation() {
  return {
      .summary = {.name = "saturation",
                  .claims = {"CLM-04: unscaled scores saturate the softmax, and its gradient "
                             "vanishes"},
                  .metric = "norm of the Jacobian of the softmax over 16 keys",
                  .axis = "d_k, width of keys",
                  .rule = "holds if at the greatest width the interval without the scale lies "
                          "below a quarter of the one with it, and below its own at the smallest"},
      .logarithmic = true,
      .arms = {"scaled", "unscaled"},
      .grid = {{4, 16, 64, 256}, {4, 16, 64, 256, 1024}},
      .measure = passed_gradient,
      .conclude = decide_saturation};
}

}  // namespace fovea::lab
