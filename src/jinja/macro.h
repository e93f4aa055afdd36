#pragma once

#include "jinja/interpreter.h"

namespace fovea::jinja {

// The value of {% macro %}, or of the body of {% call %}.
Value make_macro(const Statement& node, Activation* outer);

}  // namespace fovea::jinja
