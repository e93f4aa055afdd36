#include "lab/table.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"

namespace fovea::lab {
namespace {

// Quantiles 0.975 of Student's t distribution for 1, 2, ... degrees of freedom.
constexpr double kQuantiles[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262};
constexpr double kNormal = 1.96;  // for more

double quantile(size_t freedom) {
  return freedom <= std::size(kQuantiles) ? kQuantiles[freedom - 1] : kNormal;
}

}  // namespace

Estimate estimate(const std::vector<double>& values) {
  const auto n = static_cast<double>(values.size());
  Estimate e;
  for (const double y : values) e.mean += y / n;
  double squares = 0;
  for (const double y : values) squares += (y - e.mean) * (y - e.mean);
  double half = std::numeric_limits<double>::infinity();
  if (values.size() > 1) half = quantile(values.size() - 1) * std::sqrt(squares / (n - 1) / n);
  e.low = e.mean - half;
  e.high = e.mean + half;
  return e;
}

void Table::add(const std::string& series, double x, double rate, double y) {
  for (LabPoint& point : points_) {
    if (point.series != series || point.x != x) continue;
    point.values.push_back(y);
    return;
  }
  points_.push_back({.series = series, .x = x, .values = {y}, .learning_rate = rate});
}

void Table::finish() {
  for (LabPoint& point : points_) {
    const Estimate e = estimate(point.values);
    point.mean = e.mean;
    point.low = e.low;
    point.high = e.high;
  }
}

const LabPoint& Table::at(const std::string& series, double x) const {
  for (const LabPoint& point : points_)
    if (point.series == series && point.x == x) return point;
  fail(ErrorKind::Internal, "no value of {} at {}", series, x);
}

const LabPoint& Table::first(const std::string& series) const {
  const std::vector<double> all = x_values(series);
  return at(series, all.empty() ? 0 : all.front());
}

const LabPoint& Table::last(const std::string& series) const {
  const std::vector<double> all = x_values(series);
  return at(series, all.empty() ? 0 : all.back());
}

std::vector<std::string> Table::series() const {
  std::vector<std::string> names;
  for (const LabPoint& point : points_)
    if (std::find(names.begin(), names.end(), point.series) == names.end())
      names.push_back(point.series);
  return names;
}

std::vector<double> Table::x_values(const std::string& series) const {
  std::vector<double> x_values;
  for (const LabPoint& point : points_)
    if (point.series == series) x_values.push_back(point.x);
  std::sort(x_values.begin(), x_values.end());
  return x_values;
}

Outcome above(const LabPoint& point, double limit) {
  if (point.low > limit) return Outcome::holds;
  return point.high <= limit ? Outcome::fails : Outcome::undecided;
}

Outcome below(const LabPoint& point, double limit) {
  if (point.high < limit) return Outcome::holds;
  return point.low >= limit ? Outcome::fails : Outcome::undecided;
}

Outcome above(const LabPoint& greater, const LabPoint& less, double factor, double margin) {
  if (greater.low > factor * less.high + margin) return Outcome::holds;
  return greater.high <= factor * less.low + margin ? Outcome::fails : Outcome::undecided;
}

LabPoint by_seed(const Table& table, const std::function<double(const SeedValue& value)>& number) {
  LabPoint result;
  size_t seeds = table.points().empty() ? 0 : table.points()[0].values.size();
  for (const LabPoint& point : table.points()) seeds = std::min(seeds, point.values.size());
  for (size_t seed = 0; seed < seeds; ++seed)
    result.values.push_back(number(
        [&](const std::string& series, double x) { return table.at(series, x).values[seed]; }));
  const Estimate e = estimate(result.values);
  result.mean = e.mean;
  result.low = e.low;
  result.high = e.high;
  return result;
}

std::string number_text(double value) { return fmt::format("{:.3g}", value); }

std::string text_of(const LabPoint& point) {
  return fmt::format("{} +- {}", number_text(point.mean),
                     fmt::format("{:.2g}", point.high - point.mean));
}

double ratio(const LabPoint& a, const LabPoint& b) { return a.mean / b.mean; }

}  // namespace fovea::lab
