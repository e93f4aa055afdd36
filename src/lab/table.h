#pragma once

#include <string>
#include <vector>

#include "fovea/lab.h"

namespace fovea::lab {

// The mean of some values and its 95% interval.
struct Estimate {
  double mean = 0, low = 0, high = 0;
};
// Student's t interval of the mean. One value has the interval of all numbers: its bounds are
// infinite.
Estimate estimate(const std::vector<double>& values);

// The results of all runs, by series and place of the axis.
class Table {
 public:
  void add(const std::string& series, double x, double rate, double y);
  void finish();  // computes the intervals

  // Throws Internal if there is no such point.
  const LabPoint& at(const std::string& series, double x) const;
  std::vector<std::string> series() const;                      // in the order of the first points
  std::vector<double> places(const std::string& series) const;  // ascending
  const LabPoint& first(const std::string& series) const { return at(series, places(series)[0]); }
  const LabPoint& last(const std::string& series) const {
    return at(series, places(series).back());
  }
  const std::vector<LabPoint>& points() const { return points_; }

 private:
  std::vector<LabPoint> points_;
};

// Whether the interval of one mean lies above that of the other, after it is divided by `factor`.
bool above(const LabPoint& greater, const LabPoint& less, double factor = 1);
// "0.93 +- 0.02"
std::string text_of(const LabPoint& point);
// The ratio of two means, as text: "3.1".
double ratio(const LabPoint& a, const LabPoint& b);
std::string number_text(double value);  // three significant digits

}  // namespace fovea::lab
