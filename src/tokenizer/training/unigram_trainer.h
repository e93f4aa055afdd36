#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/training/word_counter.h"

namespace fovea {

struct UnigramTrainerOptions {
  int64_t pieces = 8000;  // maximum number of pieces
  // Receives the fraction done; return false to stop.
  std::function<bool(double)> progress = nullptr;
};

// A piece and the logarithm of its probability.
using ScoredPiece = std::pair<std::string, double>;

// Finds the pieces that make the words most likely. Starts from the substrings that cover the most
// text, then alternately fits their probabilities by expectation maximisation and removes the
// pieces whose removal reduces the likelihood least, until the requested number remains
// (https://arxiv.org/abs/1804.10959; same schedule as sentencepiece). Each character of the words
// is a piece. The result is sorted by score; it is empty if `progress` returned false.
std::vector<ScoredPiece> train_unigram(const WordCounts& words,
                                       const UnigramTrainerOptions& options);

// Returns first the characters, then substrings that occur in different contexts and words, by the
// amount of text that they cover; at most `most` pieces in total. The score of a piece is the
// number of characters that it covers.
std::vector<ScoredPiece> unigram_seeds(const WordCounts& words, size_t most);

}  // namespace fovea
