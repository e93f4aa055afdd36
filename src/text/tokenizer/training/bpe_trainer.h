#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/training/word_counter.h"

namespace fovea::text {

struct BpeTrainerOptions {
  int64_t vocabulary = 30000;                    // maximum number of tokens of all kinds
  std::vector<std::string> special_tokens = {};  // get the first ids
  std::vector<char32_t> initial_alphabet = {};   // tokens even if they do not occur
  int64_t alphabet_limit = 0;                    // number of characters to keep; 0 = all
  int64_t min_frequency = 0;                     // minimum frequency of a merged pair
  std::string continuing_subword_prefix = {};    // prefix of symbols that do not begin a word
  // Receives the fraction done; return false to stop.
  std::function<bool(double)> progress = nullptr;
};

struct TrainedBpe {
  std::vector<std::string> texts;  // by id
  std::vector<std::pair<std::string, std::string>> merges;
  size_t characters = 0;  // number of single-character tokens, with and without the prefix
};

// Repeatedly merges the most frequent pair (https://arxiv.org/abs/1508.07909); if several are
// equally frequent, the one with the lowest ids, like Hugging Face's trainer. Takes 12 bytes per
// character of the words, plus the counts and positions of the pairs; the time is O(n log n) for n
// characters. Returns an empty result if `progress` returned false.
TrainedBpe train_bpe(const WordCounts& words, const BpeTrainerOptions& options);

}  // namespace fovea::text
