#pragma once

#include "train/job.h"

namespace fovea {

// Builds the job of a run; notes for the plan are passed to `say`.
using Preparation = std::function<Job(const Say& say)>;

// The plan of a run, with its notes and an estimate of its time.
TrainPlan plan_run(const Preparation& prepare);

// Runs or resumes the job of `prepare` in the folder `out`. See train() for the callbacks.
TrainResult run(const std::string& out, const Preparation& prepare,
                const std::function<bool(const TrainPlan&)>& planned,
                const std::function<bool(const TrainProgress&)>& progress);

}  // namespace fovea
