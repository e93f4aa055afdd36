// The variance of attention scores by the width of keys, with and without the scale.

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "fovea/core/random.h"
#include "lab/conclude.h"
#include "lab/experiments.h"

namespace fovea::lab {
namespace {

Readings variance_of_scores(const Trial& t) {
  const auto width = static_cast<int64_t>(t.x);
  const int64_t pairs = t.times(10000, 100000);
  Random random(t.seed, Stream::sampling);
  double sum = 0, squares = 0;
  for (int64_t i = 0; i < pairs; ++i) {
    double score = 0;
    for (int64_t c = 0; c < width; ++c) {
      const double q = random.normal(), k = random.normal();
      score += q * k;
    }
    if (t.arm == "scaled") score /= std::sqrt(t.x);
    sum += score / static_cast<double>(pairs);
    squares += score * score / static_cast<double>(pairs);
  }
  return {{t.arm, t.x, squares - sum * sum}};
}

std::vector<Conclusion> decide_variance(const Table& table) {
  constexpr double kTolerance = 0.1;
  std::vector<Case> cases;
  for (const double x : table.x_values("scaled")) {
    const auto near = [&](const std::string& series, double variance) {
      const LabPoint& point = table.at(series, x);
      return std::min(above(point, (1 - kTolerance) * variance),
                      below(point, (1 + kTolerance) * variance));
    };
    cases.push_back({fmt::format("d_k = {}", x), std::min(near("scaled", 1), near("unscaled", x))});
  }
  return {conclude("CLM-03: the scale 1 / sqrt(d_k) keeps the variance of scores at 1", cases,
                   course(table, "scaled") + "; " + course(table, "unscaled"))};
}

}  // namespace

Experiment score_variance() {
  return {.summary = {.name = "score-variance",
                      .claims = {"CLM-03: the scale 1 / sqrt(d_k) keeps the variance of scores at "
                                 "1"},
                      .metric = "variance of the scores of random queries and keys",
                      .axis = "d_k, width of keys",
                      .rule = "holds at a width if the variance is within 10% of 1 with the scale, "
                              "and within 10% of d_k without it"},
          .logarithmic = true,
          .arms = {"scaled", "unscaled"},
          .grid = {{4, 16, 64, 256}, {4, 16, 64, 256, 1024}},
          .measure = variance_of_scores,
          .conclude = decide_variance};
}

}  // namespace fovea::lab
