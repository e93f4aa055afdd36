#pragma once

#include <nlohmann/json.hpp>

#include "fovea/train.h"

namespace fovea {

// The options that determine the results of a run. Options without effect on them are omitted:
// locations of files, how often something is saved, shown or evaluated, and when a run ends.
nlohmann::ordered_json settings_of(const TrainOptions& options, Objective objective);

}  // namespace fovea
