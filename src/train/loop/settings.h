#pragma once

#include <nlohmann/json.hpp>

#include "fovea/train/train_embedder.h"

namespace fovea::train {

// Return the options that decide a run's results (Field::decides), by field name. Other options are
// paths of data and output, limits of memory, early stopping, how often something is saved, shown
// or measured, and options of other objectives. The callers add the precision and a hash of the
// data. `objective` is the objective of the run and replaces options.objective, which may be
// automatic.
nlohmann::ordered_json settings_of(TrainOptions options, Objective objective);
nlohmann::ordered_json settings_of(EmbedderTraining training);

}  // namespace fovea::train
