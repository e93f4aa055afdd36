#pragma once

#include <array>

#include "loop/job.h"

namespace fovea::train {

// Sets the intervals of evaluations and samples that the options leave open, so that evaluations,
// samples and snapshots take at most 15% of the time, but a run has at least one evaluation. In a
// run that begins with a model that exists, which is often short, there are also fewer samples, and
// an evaluation reads only a part of the held-out data. This
// follows from numbers of operations and bytes, not from measured times, so that it is the same on
// every machine.
void choose_pauses(Job& job);

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
  bool evaluates_start_;
};

}  // namespace fovea::train
