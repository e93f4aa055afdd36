#pragma once

#include "fovea/train.h"

namespace fovea {

// Throws InvalidArgument if a field is out of its range or does not go with another.
void check_options(const TrainOptions& options);
// The same of the data alone: one kind of it, and an objective that goes with it.
void check_data(const TrainOptions& options);

}  // namespace fovea
