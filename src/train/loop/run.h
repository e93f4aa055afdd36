#pragma once

#include "loop/job.h"

namespace fovea::train {

// Builds the job of a run; calls `say` with each note for the plan.
using Preparation = std::function<Job(const Say& say)>;

// Returns the plan of a run, with its notes and an estimate of its time.
TrainPlan plan_run(const Preparation& prepare);

// Runs or resumes the job that `prepare` builds, in the folder `out`. See train() for the
// callbacks. `ranks`: as in TrainOptions.
TrainResult run(const std::string& out, const Preparation& prepare,
                const std::function<bool(const TrainPlan&)>& planned,
                const std::function<bool(const TrainProgress&)>& progress,
                const std::function<void(Pause, double)>& pausing = {},
                Communicator* ranks = nullptr);

}  // namespace fovea::train
