#pragma once

#include <cstdint>

#include "transformer/transformer.h"

namespace fovea::train {

// Initialises the parameters that a checkpoint lacks, such as those of a new head, as in a new
// model.
void initialise_missing(model::Transformer& model, uint64_t seed);

}  // namespace fovea::train
