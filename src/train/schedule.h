#pragma once

#include "fovea/train.h"

namespace fovea {

struct RateSchedule {
  Schedule kind = Schedule::cosine;
  double peak = 1e-3;
  double final_rate = 0.1;      // cosine, trapezoid: rate at the end, as a fraction of the peak
  int64_t steps = 0;            // number of steps of the run
  int64_t warmup = 0;           // steps in which the rate rises linearly to the peak
  double decay_fraction = 0.2;  // trapezoid: final fraction of the steps, in which the rate falls
};

// Returns the learning rate of step `step`, which counts from 0.
double learning_rate(const RateSchedule& schedule, int64_t step);

}  // namespace fovea
