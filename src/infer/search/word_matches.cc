#include "search/word_matches.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace fovea::infer {
namespace {

// Returns whether the byte belongs to a word: ASCII letters, digits, and all characters outside
// ASCII.
bool is_word_byte(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= 0x80 || (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

float dot(const std::vector<float>& a, const std::vector<float>& b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0f);
}

}  // namespace

std::vector<SpanVector> words_of(std::string_view text, const std::vector<SpanVector>& tokens) {
  std::vector<SpanVector> words;
  for (const SpanVector& token : tokens) {
    size_t begin = token.begin, end = std::min(token.end, text.size());
    while (begin < end && !is_word_byte(text[begin])) ++begin;  // tokens may begin with a space
    while (end > begin && !is_word_byte(text[end - 1])) --end;
    if (begin == end) continue;
    if (!words.empty() && words.back().end == begin) {
      std::vector<float>& sum = words.back().vector;
      for (size_t i = 0; i < sum.size(); ++i) sum[i] += token.vector[i];
      words.back().end = end;
    } else {
      words.push_back({begin, end, token.vector});
    }
  }
  for (SpanVector& word : words) {
    const float length = std::sqrt(dot(word.vector, word.vector));
    for (float& x : word.vector) x = length > 0 ? x / length : 0;
  }
  return words;
}

std::vector<WordPair> best_matches(const std::vector<SpanVector>& query,
                                   const std::vector<SpanVector>& passage) {
  std::vector<WordPair> pairs;
  for (size_t q = 0; q < query.size() && !passage.empty(); ++q) {
    WordPair best{q, 0, dot(query[q].vector, passage[0].vector)};
    for (size_t p = 1; p < passage.size(); ++p)
      if (const float s = dot(query[q].vector, passage[p].vector); s > best.similarity)
        best = {q, p, s};
    pairs.push_back(best);
  }
  return pairs;
}

}  // namespace fovea::infer
