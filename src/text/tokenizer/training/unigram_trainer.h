#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/training/word_counter.h"

namespace fovea::text {

struct UnigramTrainerOptions {
  int64_t pieces = 8000;  // maximum number of pieces, unless there are more characters
  // Receives the fraction done; return false to stop.
  std::function<bool(double)> progress = nullptr;
};

// A piece and the logarithm of its probability.
using ScoredPiece = std::pair<std::string, double>;

// Finds pieces that give the words a high likelihood (https://arxiv.org/abs/1804.10959; same
// schedule as sentencepiece). Starts from the substrings that cover the most text. Then alternately
// fits their probabilities by expectation maximisation and removes the pieces whose removal reduces
// the likelihood least, until about the requested number remains. Each character of the words is a
// piece. The result is sorted by descending score; it is empty if `progress` returned false.
std::vector<ScoredPiece> train_unigram(const WordCounts& words,
                                       const UnigramTrainerOptions& options);

// Returns all characters, then the repeated substrings and words that cover the most text, up to
// `most` pieces in total. The score of a piece is the number of characters that it covers.
std::vector<ScoredPiece> unigram_seeds(const WordCounts& words, size_t most);

}  // namespace fovea::text
