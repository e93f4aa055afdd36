#pragma once

#include <nlohmann/json.hpp>

#include "fovea/train_embedder.h"

namespace fovea {

// Return the options that decide a run's results (Field::decides), by field name. Other options are
// paths, limits of memory, early stopping, and how often something is saved, shown or measured.
// `objective` is the objective of the run and replaces options.objective, which may be automatic.
nlohmann::ordered_json settings_of(TrainOptions options, Objective objective);
nlohmann::ordered_json settings_of(EmbedderTraining training);

}  // namespace fovea
