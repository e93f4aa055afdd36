#include "metrics/rouge.h"

#include <algorithm>
#include <string>
#include <vector>

#include "metrics/words.h"

namespace fovea {
namespace {

// Returns the text in lower case, with spaces in place of all characters but a-z and 0-9. Python's
// lower() makes ASCII letters of two other characters: the Kelvin sign, and the capital I with a
// dot, whose dot becomes a separate character.
std::string lowered(std::string_view text) {
  std::string result;
  for (const std::string_view character : characters_of(text)) {
    const char c = character[0];
    if (character == "\u212a") {
      result += 'k';
    } else if (character == "\u0130") {
      result += "i ";
    } else if (c >= 'A' && c <= 'Z') {
      result += static_cast<char>(c - 'A' + 'a');
    } else {
      result += (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ? c : ' ';
    }
  }
  return result;
}

// Returns the length of the longest common subsequence of two lists of words.
int64_t common_length(const std::vector<std::string_view>& a,
                      const std::vector<std::string_view>& b) {
  std::vector<int64_t> length(b.size() + 1);  // [j]: for the words of `a` so far and j words of `b`
  for (const std::string_view word : a) {
    int64_t diagonal = 0;
    for (size_t j = 1; j <= b.size(); ++j) {
      const int64_t above = length[j];
      length[j] = word == b[j - 1] ? diagonal + 1 : std::max(above, length[j - 1]);
      diagonal = above;
    }
  }
  return length.back();
}

}  // namespace

void RougeL::add(std::string_view hypothesis, std::string_view reference) {
  const std::string ours = lowered(hypothesis), theirs = lowered(reference);
  const std::vector<std::string_view> words = words_of(ours), reference_words = words_of(theirs);
  ++lines_;
  const auto common = static_cast<double>(common_length(words, reference_words));
  if (common == 0) return;
  const double precision = common / static_cast<double>(words.size());
  const double recall = common / static_cast<double>(reference_words.size());
  sum_ += 2 * precision * recall / (precision + recall);
}

double RougeL::score() const { return lines_ == 0 ? 0 : 100 * sum_ / static_cast<double>(lines_); }

}  // namespace fovea
