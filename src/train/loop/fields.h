#pragma once

#include <string>

#include "fovea/train/train.h"

namespace fovea::train {

// Visits the options that determine which tokens of conversations are predicted.
void visit_answers(std::string& chat_template, TrainOn& train_on, bool decides,
                   OptionVisitor& visitor);

// Visits the options of ppo and grpo. Those of the other objective decide nothing, and with another
// one only the length of the answers that a student writes.
void visit_reinforcement(ReinforcementOptions& options, Objective objective, bool student_writes,
                         OptionVisitor& visitor);

}  // namespace fovea::train
