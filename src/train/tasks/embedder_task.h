#pragma once

#include "fovea/train/train_embedder.h"
#include "loop/job.h"

namespace fovea::train {

// Checks the options and the data and builds the job of training an embedder. Throws the same
// errors as train_embedder(); writes nothing.
Job prepare_embedder(const EmbedderTraining& training, const Say& say);

}  // namespace fovea::train
