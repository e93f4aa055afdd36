#pragma once

#include "train/job.h"

namespace fovea {

// Checks every option and the data and builds the job of `fovea train`; with `read_only` nothing is
// written anywhere. `reading` receives how much of long texts is read; ReadingStopped if it returns
// false. Errors name the option or the file; OutOfMemory if the plan needs more than there is.
Job prepare(const Spec& spec, const TrainOptions& options, bool read_only, const Say& say,
            const std::function<bool(double fraction)>& reading = {});

}  // namespace fovea
