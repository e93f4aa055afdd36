#pragma once

#include <string>

#include "loop/job.h"

namespace fovea::train {

// What a run trains, which determines the learning rate and the length that suit it.
enum class TrainedPart { new_model, all_weights, adapters };
TrainedPart trained_by(const TrainOptions& options);

// The peak learning rate and the length of a run.
struct Recommended {
  double rate = 0;
  double epochs = 0;        // 0 = kRecommendedSteps steps
  std::string reason = {};  // "fine-tuning of all weights on conversations"
};
Recommended recommended(Objective objective, TrainedPart trained);

// The length of a run without epochs, and the most steps that recommended epochs may take.
constexpr int64_t kRecommendedSteps = 2000;
constexpr double kRateOfNewModel = 1e-3;

// Sets the learning rate, the length and the warm-up that the options leave open, and tells them in
// the plan. A resumed run keeps its own. `epoch`: forward passes of an epoch.
void choose_training(Job& job, Objective objective, double epoch);
// Tells the chosen rates in the plan.
void plan_rates(Job& job);

}  // namespace fovea::train
