#pragma once

#include "loop/job.h"

namespace fovea::train {

// Whether the options train both models of images and texts: with a new model's Spec, or from the
// directory of such models.
bool trains_towers(const model::Spec& spec, const TrainOptions& options);

// Checks the options and the data and builds the job of contrastive training. The job's model is
// the encoder of images; the task has the model of texts. Throws the errors of train().
Job prepare_towers(const model::Spec& spec, const TrainOptions& options, const Say& say);

}  // namespace fovea::train
