#pragma once

#include <functional>
#include <string>
#include <vector>

#include "lab/lab.h"

namespace fovea::lab {

// The mean of some values and its 95% interval.
struct Estimate {
  double mean = 0, low = 0, high = 0;
};
// Student's t interval of the mean. One value has the interval of all numbers: its bounds are
// infinite.
Estimate estimate(const std::vector<double>& values);

// The results of all runs, by series and point of the axis.
class Table {
 public:
  void add(const std::string& series, double x, double rate, double y);
  void finish();  // computes the intervals

  // These throw Internal if there is no such point.
  const LabPoint& at(const std::string& series, double x) const;
  std::vector<std::string> series() const;  // in the order of the first points
  std::vector<double> x_values(const std::string& series) const;  // ascending
  const LabPoint& first(const std::string& series) const;
  const LabPoint& last(const std::string& series) const;
  const std::vector<LabPoint>& points() const { return points_; }

 private:
  std::vector<LabPoint> points_;
};

// What the intervals of some means say about a condition: it fails if they lie on its other side,
// and is undecided if they reach over the limit or overlap. The least of several outcomes is that
// of "and", the greatest that of "or".
enum class Outcome { fails, undecided, holds };
inline Outcome outcome_of(bool holds) { return holds ? Outcome::holds : Outcome::fails; }

// Whether the interval lies above or below a limit.
Outcome above(const LabPoint& point, double limit);
Outcome below(const LabPoint& point, double limit);
// Whether one interval lies above `factor` times the other, plus `margin`.
Outcome above(const LabPoint& greater, const LabPoint& less, double factor = 1, double margin = 0);

// Returns the interval of a number that is computed from the values of each seed alone.
// `number(value)` gets a function that returns the value of the seed at a point of a series.
using SeedValue = std::function<double(const std::string& series, double x)>;
LabPoint by_seed(const Table& table, const std::function<double(const SeedValue& value)>& number);

// "0.93 +- 0.02"
std::string text_of(const LabPoint& point);
// The ratio of two means, as text: "3.1".
double ratio(const LabPoint& a, const LabPoint& b);
std::string number_text(double value);  // three significant digits

}  // namespace fovea::lab
