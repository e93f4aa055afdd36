#pragma once

// Explains why a passage was found: late interaction (Khattab and Zaharia 2020, arXiv:2004.12832),
// word by word.

#include <string_view>
#include <vector>

namespace fovea {

// A token's position in its text (empty for special ones), and its vector of length 1.
struct PlacedVector {
  size_t begin, end;
  std::vector<float> vector;
};

// Adjacent tokens without a space or a mark in between form a word; its vector is the normalised
// mean of theirs. Marks alone are not words.
std::vector<PlacedVector> words_of(std::string_view text, const std::vector<PlacedVector>& tokens);

// For each word of the query the most similar word of the passage, by cosine similarity.
struct WordPair {
  size_t query, passage;  // indices of words
  float similarity;
};
std::vector<WordPair> best_matches(const std::vector<PlacedVector>& query,
                                   const std::vector<PlacedVector>& passage);

}  // namespace fovea
