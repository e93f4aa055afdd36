#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/training/word_counter.h"

namespace fovea {

struct BpeTrainerOptions {
  int64_t vocabulary = 30000;                      // at most so many tokens, all of them counted
  std::vector<std::string> special_tokens = {};    // have the first ids
  std::vector<char32_t> initial_alphabet = {};     // characters that are tokens in any case
  int64_t alphabet_limit = 0;                      // keep the most frequent characters; 0 = all
  int64_t min_frequency = 0;                       // of a pair that is merged
  std::string continuing_subword_prefix = {};      // of symbols that do not begin a word
  std::function<bool(double)> progress = nullptr;  // the part that is done; false stops
};

struct TrainedBpe {
  std::vector<std::string> texts;  // by id
  std::vector<std::pair<std::string, std::string>> merges;
  size_t characters = 0;  // tokens that begin merging, special ones apart
};

// Merges the most frequent pair again and again; of equally frequent ones the one of the lowest
// ids, as Hugging Face's trainer does (https://arxiv.org/abs/1508.07909). Takes 12 bytes for each
// character of the words, and a few more for pairs; time n log n in their length. Empty when
// stopped.
TrainedBpe train_bpe(const WordCounts& words, const BpeTrainerOptions& options);

}  // namespace fovea
