#pragma once

#include <string>
#include <vector>

namespace fovea {

// Returns the candidate that `word` is probably a misspelling of: the one with the fewest
// single-character edits (Levenshtein 1966). Empty if more than a third of the letters (at least
// two) differ.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// Returns "; did you mean X?" for the end of a message, or an empty string.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace fovea
