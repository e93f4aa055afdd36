#pragma once

#include <nlohmann/json.hpp>

#include "fovea/train.h"

namespace fovea {

// The options that decide a run's numbers. An option that decides nothing is left out: where files
// lie, how often something is saved, shown or measured, and when a run ends.
nlohmann::ordered_json settings_of(const TrainOptions& options, Objective objective);

}  // namespace fovea
