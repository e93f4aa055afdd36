#pragma once

// Why a passage was found: late interaction (Khattab and Zaharia 2020, arXiv:2004.12832), word by
// word.

#include <string_view>
#include <vector>

namespace fovea {

// A token's place in its text (empty for special ones), and its vector of length 1.
struct PlacedVector {
  size_t begin, end;
  std::vector<float> vector;
};

// Neighbouring tokens without a space or a mark between them are a word; its vector is the mean of
// theirs, of length 1. Marks alone are no words.
std::vector<PlacedVector> words_of(std::string_view text, const std::vector<PlacedVector>& tokens);

// For each word of the query the most alike of the passage, by the cosine of their vectors.
struct WordPair {
  size_t query, passage;  // numbers of words
  float similarity;
};
std::vector<WordPair> best_matches(const std::vector<PlacedVector>& query,
                                   const std::vector<PlacedVector>& passage);

}  // namespace fovea
