#pragma once

#include "fovea/train/train_embedder.h"
#include "loop/job.h"

namespace fovea::train {

// Builds the job of training a sparse encoder, a late interaction model or a cross-encoder. The
// options are those of check_embedder_options(). Throws the errors of train_embedder(); writes
// nothing.
Job prepare_retriever(const EmbedderTraining& training, TrainedKind kind, const Say& say);

}  // namespace fovea::train
