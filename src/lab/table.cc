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
  fail(ErrorKind::Internal, "lab: no value of {} at {}", series, x);
}

std::vector<std::string> Table::series() const {
  std::vector<std::string> names;
  for (const LabPoint& point : points_)
    if (std::find(names.begin(), names.end(), point.series) == names.end())
      names.push_back(point.series);
  return names;
}

std::vector<double> Table::places(const std::string& series) const {
  std::vector<double> places;
  for (const LabPoint& point : points_)
    if (point.series == series) places.push_back(point.x);
  std::sort(places.begin(), places.end());
  return places;
}

bool above(const LabPoint& greater, const LabPoint& less, double factor) {
  return greater.low / factor > less.high;
}

std::string number_text(double value) { return fmt::format("{:.3g}", value); }

std::string text_of(const LabPoint& point) {
  return fmt::format("{} +- {}", number_text(point.mean),
                     fmt::format("{:.2g}", point.high - point.mean));
}

double ratio(const LabPoint& a, const LabPoint& b) { return a.mean / b.mean; }

}  // namespace fovea::lab
