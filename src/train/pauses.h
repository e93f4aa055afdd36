#pragma once

#include <array>

#include "train/job.h"

namespace fovea {

// The time that a run spends between its steps, by the kind of pause: estimated before the run, and
// measured during it.
class PauseTimes {
 public:
  // `step_seconds`: the time of a step.
  PauseTimes(const Job& job, double step_seconds);

  double seconds_of(Pause pause) const { return seconds_[static_cast<size_t>(pause)]; }
  void measured(Pause pause, double seconds) { seconds_[static_cast<size_t>(pause)] = seconds; }
  // Returns the time of all pauses after step `step`.
  double left_after(int64_t step) const;

 private:
  std::array<double, 3> seconds_;
  std::array<int64_t, 3> every_;
  int64_t steps_;
};

}  // namespace fovea
