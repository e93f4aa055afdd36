#pragma once

#include "jinja/syntax.h"

namespace fovea::jinja {

// Gives every name of a parsed template its slot and refuses unknown filters and tests, where Jinja
// does so before it renders. BadFile and Unsupported with line and column.
void resolve(ChatTemplate::Program& program);

}  // namespace fovea::jinja
