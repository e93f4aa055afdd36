#pragma once

#include "fovea/train.h"

namespace fovea {

// Throws InvalidArgument, naming the field, if a field is out of range or conflicts with another
// field.
void check_options(const TrainOptions& options);
// Checks only the data: throws InvalidArgument, naming the field, unless there is exactly one kind
// of data and the objective suits it.
void check_data(const TrainOptions& options);

}  // namespace fovea
