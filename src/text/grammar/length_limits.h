#pragma once

#include "grammar/syntax.h"

namespace fovea::text {

// Returns the rules of the texts of a regular expression, which calls no rules, with `least` to
// `most` characters; rule 0 is the first. Throws Unsupported if there are too many rules.
std::vector<Syntax> within_lengths(const SyntaxNode& text, const Counts& lengths);

}  // namespace fovea::text
