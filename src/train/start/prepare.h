#pragma once

#include "loop/job.h"

namespace fovea::train {

// Checks every option and the data, and builds the job of `fovea train`. If `read_only` is true, no
// files are written. `reading` is called regularly while text files are read, and receives the
// fraction read so far; throws ReadingStopped if it returns false. Errors name the option or the
// file. Throws OutOfMemory if the plan exceeds the available memory.
Job prepare(const model::Spec& spec, TrainOptions options, bool read_only, const Say& say,
            const std::function<bool(double fraction)>& reading = {});

}  // namespace fovea::train
