#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "metrics/bleu.h"
#include "metrics/words.h"

namespace fovea::infer {
namespace {

// Counts the sequences of n characters in a text. `begins` is the result of begins_of().
std::map<std::string_view, int64_t> character_ngrams(std::string_view text,
                                                     const std::vector<size_t>& begins, size_t n) {
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

// Returns the words of a text. A punctuation character at the end of a word, or else the one at its
// beginning, is a word of its own.
std::vector<std::string_view> parted_words(std::string_view text) {
  const auto is_punctuation = [](char c) {
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
           (c >= '{' && c <= '~');
  };
  std::vector<std::string_view> words;
  for (const std::string_view word : words_of(text)) {
    size_t first = word.size();  // length of the first part
    if (is_punctuation(word.back()))
      first = word.size() - 1;
    else if (is_punctuation(word.front()))
      first = 1;
    if (first > 0 && first < word.size()) words.push_back(word.substr(0, first));
    words.push_back(first < word.size() ? word.substr(first) : word);
  }
  return words;
}

std::map<std::vector<std::string_view>, int64_t> word_ngrams(
    const std::vector<std::string_view>& words, size_t n) {
  std::map<std::vector<std::string_view>, int64_t> counts;
  for (size_t i = 0; i + n <= words.size(); ++i)
    ++counts[{words.begin() + static_cast<std::ptrdiff_t>(i),
              words.begin() + static_cast<std::ptrdiff_t>(i + n)}];
  return counts;
}

}  // namespace

template <class Ngrams>
void Chrf::count(int order, const Ngrams& ours, const Ngrams& theirs) {
  int64_t total = 0;
  for (const auto& [ngram, count] : ours) {
    total += count;
    const auto found = theirs.find(ngram);
    if (found != theirs.end()) matches_[order] += std::min(count, found->second);
  }
  // If the reference has no n-gram of this order, those of the hypothesis do not count against it.
  if (!theirs.empty()) hypothesis_[order] += total;
  for (const auto& [ngram, count] : theirs) reference_[order] += count;
}

void Chrf::add(std::string_view hypothesis, std::string_view reference) {
  const std::string ours = without_spaces(hypothesis), theirs = without_spaces(reference);
  const std::vector<size_t> our_begins = begins_of(ours), their_begins = begins_of(theirs);
  for (int i = 0; i < kCharacters; ++i) {
    const auto n = static_cast<size_t>(i) + 1;
    count(i, character_ngrams(ours, our_begins, n), character_ngrams(theirs, their_begins, n));
  }
  if (orders_ == kCharacters) return;
  const auto our_words = parted_words(hypothesis), their_words = parted_words(reference);
  for (int i = kCharacters; i < orders_; ++i) {
    const auto n = static_cast<size_t>(i - kCharacters) + 1;
    count(i, word_ngrams(our_words, n), word_ngrams(their_words, n));
  }
}

double Chrf::score() const {
  double precision = 0, recall = 0;
  int orders = 0;
  for (int n = 0; n < orders_; ++n) {
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
