#pragma once

#include "train/job.h"

namespace fovea {

// Checks every option and the data and builds the job of `fovea train`; with `read_only` no files
// are written. `reading` receives the fraction of long texts that was read; throws ReadingStopped
// if it returns false. Errors name the option or the file; throws OutOfMemory if the plan exceeds
// the available memory.
Job prepare(const Spec& spec, const TrainOptions& options, bool read_only, const Say& say,
            const std::function<bool(double fraction)>& reading = {});

}  // namespace fovea
