#pragma once

#include "fovea/train.h"

namespace fovea {

// InvalidArgument names the option that is out of its range, or that goes with no other.
void check_options(const TrainOptions& options);
// The same of the data alone: one kind of it, and an objective that goes with it.
void check_data(const TrainOptions& options);

}  // namespace fovea
