#pragma once

#include <string>

#include "fovea/train.h"

namespace fovea {

// Visits the options that determine which tokens of conversations are predicted.
void visit_answers(std::string& chat_template, TrainOn& train_on, bool decides,
                   OptionVisitor& visitor);

}  // namespace fovea
