#pragma once

#include <string>
#include <vector>

namespace fovea {

// The candidate that takes the fewest single-character edits (Levenshtein 1966): what somebody
// probably meant.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace fovea
