#pragma once

// Explains why a passage was found: late interaction (Khattab and Zaharia 2020, arXiv:2004.12832),
// word by word.

#include <string_view>
#include <vector>

namespace fovea::infer {

// A token's range of bytes in its text (empty for a special token), and its vector of unit length.
struct SpanVector {
  size_t begin, end;
  std::vector<float> vector;
};

// Joins adjacent tokens without a space or punctuation between them into words. The vector of a
// word is the normalised mean of the vectors of its tokens. Punctuation is not part of a word.
std::vector<SpanVector> words_of(std::string_view text, const std::vector<SpanVector>& tokens);

// A word of the query and the most similar word of the passage.
struct WordPair {
  size_t query, passage;  // indices of words
  float similarity;       // cosine
};
// Returns one pair per word of the query; none if the passage has no words.
std::vector<WordPair> best_matches(const std::vector<SpanVector>& query,
                                   const std::vector<SpanVector>& passage);

}  // namespace fovea::infer
