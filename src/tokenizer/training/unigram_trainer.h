#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/training/word_counter.h"

namespace fovea {

struct UnigramTrainerOptions {
  int64_t pieces = 8000;                           // at most so many
  std::function<bool(double)> progress = nullptr;  // the part that is done; false stops
};

// A piece and the logarithm of its probability.
using ScoredPiece = std::pair<std::string, double>;

// The pieces under which the words are most likely: starts from the substrings that cover most
// text, fits their probabilities by expectation maximisation, and removes those whose loss costs
// least, until as many are left as are wanted (https://arxiv.org/abs/1804.10959, in the steps of
// sentencepiece). Each character of the words is a piece. Sorted by score; empty when stopped.
std::vector<ScoredPiece> train_unigram(const WordCounts& words,
                                       const UnigramTrainerOptions& options);

// Substrings that occur with different characters around them, and words: the characters first,
// then those that cover most text, `most` in all. A piece's score is how many characters it covers.
std::vector<ScoredPiece> unigram_seeds(const WordCounts& words, size_t most);

}  // namespace fovea
