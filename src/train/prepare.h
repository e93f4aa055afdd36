#pragma once

#include "train/job.h"

namespace fovea {

// Returns the metric that selects the best weights. Throws InvalidArgument, naming best_by, if the
// requested one is not measured.
std::string choose_best_by(const std::string& asked, const EvaluationTask& task);

// Checks every option and the data, and builds the job of `fovea train`. If `read_only` is true, no
// files are written. `reading` is called regularly while text files are read, and receives the
// fraction read so far; throws ReadingStopped if it returns false. Errors name the option or the
// file. Throws OutOfMemory if the plan exceeds the available memory.
Job prepare(const Spec& spec, TrainOptions options, bool read_only, const Say& say,
            const std::function<bool(double fraction)>& reading = {});

}  // namespace fovea
