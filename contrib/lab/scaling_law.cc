#include "lab/scaling_law.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/math.h"
#include "fovea/core/random.h"

namespace fovea::lab {
namespace {

constexpr double kFlopsPerParameterAndToken = 6;

// Solves the normal equations of loss = E + A n + B d for the columns in `used`, by elimination
// with pivots. Returns false if they are singular.
bool solve(const std::vector<std::array<double, 3>>& rows, const std::vector<LawPoint>& points,
           const std::array<bool, 3>& used, std::array<double, 3>& x) {
  std::array<std::array<double, 4>, 3> m = {};
  for (size_t r = 0; r < rows.size(); ++r)
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = 0; j < 3; ++j)
        if (used[i] && used[j]) m[i][j] += rows[r][i] * rows[r][j];
      if (used[i]) m[i][3] += rows[r][i] * points[r].loss;
    }
  for (size_t i = 0; i < 3; ++i)
    if (!used[i]) m[i][i] = 1;
  for (size_t i = 0; i < 3; ++i) {
    size_t pivot = i;
    for (size_t r = i + 1; r < 3; ++r)
      if (std::abs(m[r][i]) > std::abs(m[pivot][i])) pivot = r;
    std::swap(m[i], m[pivot]);
    constexpr double kSingular = 1e-14;
    if (std::abs(m[i][i]) < kSingular) return false;
    for (size_t r = 0; r < 3; ++r) {
      if (r == i) continue;
      const double factor = m[r][i] / m[i][i];
      for (size_t c = i; c < 4; ++c) m[r][c] -= factor * m[i][c];
    }
  }
  for (size_t i = 0; i < 3; ++i) x[i] = m[i][3] / m[i][i];
  return true;
}

// The best law with these exponents, and its sum of squares.
struct Candidate {
  LawConstants law;
  double squares = std::numeric_limits<double>::infinity();
};

Candidate with_exponents(const std::vector<LawPoint>& points, double alpha, double beta) {
  // Sizes relative to the smallest keep the equations well conditioned.
  const auto smallest = [&](double LawPoint::* member) {
    double least = points[0].*member;
    for (const LawPoint& p : points) least = std::min(least, p.*member);
    return least;
  };
  const double n0 = smallest(&LawPoint::parameters), d0 = smallest(&LawPoint::tokens);
  std::vector<std::array<double, 3>> rows;
  for (const LawPoint& p : points)
    rows.push_back({1, math::pow(p.parameters / n0, -alpha), math::pow(p.tokens / d0, -beta)});
  Candidate best;
  for (int subset = 1; subset < 8; ++subset) {  // non-negative least squares of three columns
    const std::array<bool, 3> used = {(subset & 1) != 0, (subset & 2) != 0, (subset & 4) != 0};
    std::array<double, 3> x = {};
    if (!solve(rows, points, used, x) || x[0] < 0 || x[1] < 0 || x[2] < 0) continue;
    double squares = 0;
    for (size_t r = 0; r < rows.size(); ++r) {
      const double error = x[0] + x[1] * rows[r][1] + x[2] * rows[r][2] - points[r].loss;
      squares += error * error;
    }
    if (squares < best.squares)
      best = {{x[0], x[1] * math::pow(n0, alpha), alpha, x[2] * math::pow(d0, beta), beta},
              squares};
  }
  return best;
}

}  // namespace

double LawConstants::loss(double parameters, double tokens) const {
  return floor + size_factor * math::pow(parameters, -size_exponent) +
         data_factor * math::pow(tokens, -data_exponent);
}

double LawConstants::best_size(double flops) const {
  const double sum = size_exponent + data_exponent;
  const double ratio = size_exponent * std::max(size_factor, 1e-300) /
                       (data_exponent * std::max(data_factor, 1e-300));
  return math::pow(ratio, 1 / sum) *
         math::pow(flops / kFlopsPerParameterAndToken, data_exponent / sum);
}

LawConstants fit_law(const std::vector<LawPoint>& points) {
  constexpr double kLeast = 0.05, kMost = 2;
  Candidate best;
  double alpha = 0, beta = 0, step = 0.15;
  for (double a = kLeast; a <= kMost; a += step)
    for (double b = kLeast; b <= kMost; b += step)
      if (const Candidate c = with_exponents(points, a, b); c.squares < best.squares)
        best = c, alpha = a, beta = b;
  // Smaller and smaller squares around the best exponents.
  for (step /= 2; step > 1e-3; step /= 2) {
    const double around_alpha = alpha, around_beta = beta;
    for (int i = -2; i <= 2; ++i)
      for (int j = -2; j <= 2; ++j) {
        const double a = std::clamp(around_alpha + i * step, kLeast, kMost);
        const double b = std::clamp(around_beta + j * step, kLeast, kMost);
        if (const Candidate c = with_exponents(points, a, b); c.squares < best.squares)
          best = c, alpha = a, beta = b;
      }
  }
  return best.law;
}

std::vector<LawConstants> resampled_laws(const std::vector<LawPoint>& points, int64_t count,
                                         uint64_t seed) {
  std::vector<LawConstants> laws;
  Random random(seed, Stream::sampling);
  for (int64_t i = 0; i < count; ++i) {
    std::vector<LawPoint> sample;
    for (size_t j = 0; j < points.size(); ++j)
      sample.push_back(points[random.word() % points.size()]);
    laws.push_back(fit_law(sample));
  }
  return laws;
}

FittedNumber fitted(const LawConstants& law, const std::vector<LawConstants>& resampled,
                    const std::function<double(const LawConstants&)>& value) {
  std::vector<double> values;
  for (const LawConstants& other : resampled) values.push_back(value(other));
  std::sort(values.begin(), values.end());
  const auto at = [&](double share) {
    return values[static_cast<size_t>(
        std::llround(share * static_cast<double>(values.size() - 1)))];
  };
  return {value(law), at(0.025), at(0.975)};
}

}  // namespace fovea::lab
