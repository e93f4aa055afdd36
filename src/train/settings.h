#pragma once

#include <nlohmann/json.hpp>

#include "fovea/train_embedder.h"

namespace fovea {

// The options that decide a run's results (Field::decides), by field name. The others are where
// files lie, how often something is saved, shown or measured, and when a run ends. `objective`: of
// the run, where options.objective is automatic.
nlohmann::ordered_json settings_of(TrainOptions options, Objective objective);
nlohmann::ordered_json settings_of(EmbedderTraining training);

}  // namespace fovea
