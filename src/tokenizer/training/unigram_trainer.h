#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/training/word_counter.h"

namespace fovea {

struct UnigramTrainerOptions {
  int64_t pieces = 8000;                           // the most pieces
  std::function<bool(double)> progress = nullptr;  // receives the fraction done; returning false
                                                   // stops
};

// A piece and the logarithm of its probability.
using ScoredPiece = std::pair<std::string, double>;

// Finds the pieces under which the words are most likely: starts from the substrings that cover the
// most text, fits their probabilities by expectation maximisation, and removes the pieces whose
// loss costs least, until the wanted number remains (https://arxiv.org/abs/1804.10959, in the steps
// of sentencepiece). Each character of the words is a piece. Sorted by score; empty if stopped.
std::vector<ScoredPiece> train_unigram(const WordCounts& words,
                                       const UnigramTrainerOptions& options);

// Substrings that occur in different contexts, and words: first the characters, then those that
// cover the most text, at most `most` in total. A piece's score is the number of characters it
// covers.
std::vector<ScoredPiece> unigram_seeds(const WordCounts& words, size_t most);

}  // namespace fovea
