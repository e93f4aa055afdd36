#pragma once

#include "fovea/text/json_grammar.h"
#include "serve/models/served_model.h"

namespace fovea::serve {

// Returns the constraint of a guide for at most `most` tokens. Throws the library's errors.
text::Constraint constraint_of(const Guide& guide, ServedModel& model, int64_t most);

}  // namespace fovea::serve
