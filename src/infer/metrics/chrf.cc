#include <algorithm>
#include <map>

#include "metrics/bleu.h"
#include "metrics/words.h"

namespace fovea::infer {
namespace {

// Counts the sequences of n characters in a text. `begins` is the result of begins_of().
std::map<std::string_view, int64_t> ngrams(std::string_view text, const std::vector<size_t>& begins,
                                           size_t n) {
  std::map<std::string_view, int64_t> counts;
  for (size_t i = 0; i + n < begins.size(); ++i)
    ++counts[text.substr(begins[i], begins[i + n] - begins[i])];
  return counts;
}

std::string without_spaces(std::string_view text) {
  std::string result;
  for (const std::string_view word : words_of(text)) result += word;
  return result;
}

// Returns the offset of each character, followed by the size of the text.
std::vector<size_t> begins_of(std::string_view text) {
  std::vector<size_t> begins{0};
  for (const std::string_view character : characters_of(text))
    begins.push_back(begins.back() + character.size());
  return begins;
}

}  // namespace

void Chrf::add(std::string_view hypothesis, std::string_view reference) {
  const std::string ours = without_spaces(hypothesis), theirs = without_spaces(reference);
  const std::vector<size_t> our_begins = begins_of(ours), their_begins = begins_of(theirs);
  for (size_t n = 1; n <= kOrder; ++n) {
    const auto known = ngrams(theirs, their_begins, n);
    int64_t total = 0;
    for (const auto& [ngram, count] : ngrams(ours, our_begins, n)) {
      total += count;
      const auto found = known.find(ngram);
      if (found != known.end()) matches_[n - 1] += std::min(count, found->second);
    }
    // If the reference has fewer than n characters, the n-grams do not count against the
    // hypothesis.
    if (!known.empty()) hypothesis_[n - 1] += total;
    for (const auto& [ngram, count] : known) reference_[n - 1] += count;
  }
}

double Chrf::score() const {
  double precision = 0, recall = 0;
  int orders = 0;
  for (int n = 0; n < kOrder; ++n) {
    if (hypothesis_[n] == 0 || reference_[n] == 0) continue;
    precision += static_cast<double>(matches_[n]) / static_cast<double>(hypothesis_[n]);
    recall += static_cast<double>(matches_[n]) / static_cast<double>(reference_[n]);
    ++orders;
  }
  if (orders == 0 || precision + recall == 0) return 0;
  precision /= orders, recall /= orders;
  constexpr double kFactor = 2 * 2;  // beta^2
  return 100 * (1 + kFactor) * precision * recall / (kFactor * precision + recall);
}

}  // namespace fovea::infer
