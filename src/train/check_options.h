#pragma once

#include "fovea/train.h"

namespace fovea {

// InvalidArgument names the option that is out of its range, or that goes with no other.
void check_options(const TrainOptions& options);

}  // namespace fovea
