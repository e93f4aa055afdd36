#pragma once

#include <string>

#include "fovea/train/train.h"

namespace fovea::train {

// Visits the options that determine which tokens of conversations are predicted.
void visit_answers(std::string& chat_template, TrainOn& train_on, bool decides,
                   OptionVisitor& visitor);

// Visits the options of ppo and grpo. Those of the other objective decide nothing.
void visit_reinforcement(ReinforcementOptions& options, Objective objective,
                         OptionVisitor& visitor);

}  // namespace fovea::train
