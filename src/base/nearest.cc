#include "base/nearest.h"

#include <algorithm>

namespace fovea {
namespace {

size_t distance_of(const std::string& word, const std::string& candidate) {
  std::vector<size_t> row(candidate.size() + 1);  // distances between prefixes
  for (size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (size_t i = 1; i <= word.size(); ++i) {
    size_t corner = row[0]++;
    for (size_t j = 1; j < row.size(); ++j) {
      const size_t replaced = corner + (word[i - 1] == candidate[j - 1] ? 0 : 1);
      corner = row[j];
      row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& candidates) {
  std::string best;
  // If more than a third of the letters (at least two) differ, it is another word.
  size_t least = std::max<size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    // A prefix counts as one edit: "--learn" for "--learning-rate".
    const bool begins = word.size() >= 4 && candidate.rfind(word, 0) == 0;
    const size_t distance = begins ? 1 : distance_of(word, candidate);
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
