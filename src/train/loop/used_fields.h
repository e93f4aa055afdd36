#pragma once

#include "fovea/train/train.h"

namespace fovea::train {

// Throws InvalidArgument, naming the field and what it needs, if the caller sets a field that the
// run does not use. The objective is not automatic; `spec` is that of the initial model, or of the
// new one.
void refuse_unused(const TrainOptions& options, Objective objective, const model::Spec& spec);

}  // namespace fovea::train
