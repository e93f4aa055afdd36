#pragma once

#include "fovea/train.h"

namespace fovea {

// Throws InvalidArgument, naming the field and what it needs, if the caller sets a field that the
// run does not use. The objective is not automatic; `spec` is that of the initial model, or of the
// new one.
void refuse_unused(const TrainOptions& options, Objective objective, const Spec& spec);

}  // namespace fovea
