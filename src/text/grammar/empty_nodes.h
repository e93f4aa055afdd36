#pragma once

#include <vector>

#include "grammar/syntax.h"

namespace fovea::text {

// Sets SyntaxNode::empty of the nodes that can match the empty text. The time is linear, also for
// rules that call one another.
void find_empty_nodes(std::vector<Syntax>& rules);

}  // namespace fovea::text
