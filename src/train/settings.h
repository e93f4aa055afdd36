#pragma once

#include "train/job.h"

namespace fovea {

// The settings that decide a run's numbers, as state.json keeps them: a resumed run must have the
// same.
nlohmann::ordered_json settings(const Job& job);

// Those of them that are options. An option which decides nothing is left out: where files lie, how
// often something is saved, shown or measured, and when a run ends.
nlohmann::ordered_json settings_of(const TrainOptions& options, Objective objective);

// InvalidArgument, naming each setting, where the job's snapshot was made with others and no change
// is allowed.
void check_settings(const Job& job);

}  // namespace fovea
