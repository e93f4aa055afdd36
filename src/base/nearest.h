#pragma once

#include <string>
#include <vector>

namespace fovea {

// The candidate that `word` is probably a misspelling or the beginning of: the one with the fewest
// insertions, deletions, replacements and swaps of neighbouring characters (Damerau 1964), leading
// dashes apart. Empty if it takes more of them than a third of the word's characters.
std::string nearest(const std::string& word, const std::vector<std::string>& candidates);

// "; did you mean X?" for the end of a message, or empty.
std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates);

}  // namespace fovea
