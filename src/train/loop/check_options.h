#pragma once

#include "fovea/train/train.h"

namespace fovea::train {

// Throws InvalidArgument, naming the field, if a field is out of range or conflicts with another
// field.
void check_options(const TrainOptions& options);
// Throws InvalidArgument unless the output directory exists, or can be created, and can be written.
void check_out(const std::string& out);
// Checks only the fields that name data: throws InvalidArgument, naming the field, unless there is
// exactly one kind of data (text, pairs or labels) and the objective suits this kind.
void check_data(const TrainOptions& options);
// Checks that a loss of the caller suits the objective, which is not automatic.
void check_loss(const TrainOptions& options, Objective objective);
// Checks the options of preferences for an objective that is not automatic.
void check_preferences(const TrainOptions& options, Objective objective);

// Returns the metric that selects the best weights. Throws InvalidArgument, naming best_by, if the
// requested one is not measured.
std::string choose_best_by(const std::string& metric, const infer::EvaluationTask& task);

}  // namespace fovea::train
