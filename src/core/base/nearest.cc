#include "base/nearest.h"

#include <algorithm>
#include <utility>

namespace fovea {
namespace {

// Returns the minimum number of insertions, deletions, replacements and swaps of neighbours
// (optimal string alignment).
size_t distance_of(const std::string& word, const std::string& candidate) {
  const size_t columns = candidate.size() + 1;
  std::vector<size_t> before(columns), last(columns), row(columns);  // distances between prefixes
  for (size_t j = 0; j < columns; ++j) row[j] = j;
  for (size_t i = 1; i <= word.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (size_t j = 1; j < columns; ++j) {
      const bool same = word[i - 1] == candidate[j - 1];
      row[j] = std::min({last[j - 1] + (same ? 0 : 1), last[j] + 1, row[j - 1] + 1});
      const bool swapped =
          i > 1 && j > 1 && word[i - 1] == candidate[j - 2] && word[i - 2] == candidate[j - 1];
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row.back();
}

std::string without_dashes(const std::string& word) {
  return word.substr(std::min(word.find_first_not_of('-'), word.size()));
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string letters = without_dashes(word);
  std::string best;
  size_t least = letters.size() / 3 + 1;
  for (const std::string& candidate : candidates) {
    const std::string its = without_dashes(candidate);
    // A prefix counts as one edit: "--learn" for "--learning-rate".
    const bool begins = letters.size() >= 3 && its.starts_with(letters);
    const size_t distance = begins ? 1 : distance_of(letters, its);
    if (distance >= least) continue;
    least = distance;
    best = candidate;
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = nearest(word, candidates);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

}  // namespace fovea
