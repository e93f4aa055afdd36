#pragma once

#include "fovea/train.h"

namespace fovea {

// Throws InvalidArgument, naming the field, if a field is out of range or conflicts with others.
void check_options(const TrainOptions& options);
// Checks the data only: there is one kind of data, and a suitable objective.
void check_data(const TrainOptions& options);

}  // namespace fovea
