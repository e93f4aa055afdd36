#pragma once

#include "fovea/train/train.h"

namespace fovea::train {

struct RateSchedule {
  Schedule kind = Schedule::cosine;
  double peak = 1e-3;
  // cosine, linear, trapezoid: rate at the end, as a fraction of the peak.
  double final_rate = 0.1;
  int64_t steps = 0;            // number of steps of the run
  int64_t warmup = 0;           // steps in which the rate rises linearly to the peak
  double decay_fraction = 0.2;  // trapezoid: final fraction of the steps, in which the rate falls
};

const char* name_of(Schedule schedule);
// Returns the learning rate of step `step`, which counts from 0.
double learning_rate(const RateSchedule& schedule, int64_t step);

// Returns the warm-up of a run of this length.
int64_t usual_warmup(int64_t steps);
// Sets the warm-up and the intervals of evaluations and samples that follow from the number of
// steps.
void choose_intervals(TrainOptions& options);

// A number that grows evenly from `first` to `last` during the first `steps` steps of a run.
struct Growth {
  int64_t first = 1, last = 1, steps = 0;
  // If above 0: the sum at which a step ends early, and the next one begins a new sum of this size.
  // The number does not grow.
  int64_t epoch = 0;

  int64_t at(int64_t step) const;
  int64_t sum(int64_t step) const;  // over the steps before `step`
  int64_t steps_per_epoch() const { return (epoch + last - 1) / last; }
};

// Returns the forward passes per step, and their mean over the run. `epoch`: passes over the data;
// 0 = unknown. If the options give epochs, a step ends with an epoch of a whole number of passes,
// as in transformers, else with the last epoch.
Growth passes_of(const TrainOptions& options, double epoch = 0);
double mean_passes(const TrainOptions& options, double epoch = 0);
// Returns the attention window of each step of a model with this context.
Growth window_of(const TrainOptions& options, int64_t context);

}  // namespace fovea::train
