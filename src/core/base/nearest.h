#pragma once

#include <string>
#include <vector>

namespace fovea {

// Returns the candidate with the smallest edit distance from `word`: the number of insertions,
// deletions, replacements and swaps of neighbouring characters (Damerau 1964). Leading dashes are
// ignored, and a candidate that begins with `word` (3 characters or more) has the distance 1.
// Returns an empty string if the distance exceeds a third of the word's characters.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// Returns "; did you mean X?" for the end of a message; empty if no candidate is near.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace fovea
