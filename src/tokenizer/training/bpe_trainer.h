#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tokenizer/training/word_counter.h"

namespace fovea {

struct BpeTrainerOptions {
  int64_t vocabulary = 30000;                      // the most tokens, including all kinds
  std::vector<std::string> special_tokens = {};    // get the first ids
  std::vector<char32_t> initial_alphabet = {};     // characters that are always tokens
  int64_t alphabet_limit = 0;                      // keep the most frequent characters; 0 = all
  int64_t min_frequency = 0;                       // least frequency of a merged pair
  std::string continuing_subword_prefix = {};      // prefix of symbols that do not begin a word
  std::function<bool(double)> progress = nullptr;  // receives the fraction done; returning false
                                                   // stops
};

struct TrainedBpe {
  std::vector<std::string> texts;  // by id
  std::vector<std::pair<std::string, std::string>> merges;
  size_t characters = 0;  // single-character tokens, without special ones
};

// Merges the most frequent pair repeatedly; of equally frequent ones that with the lowest ids, like
// Hugging Face's trainer (https://arxiv.org/abs/1508.07909). Takes 12 bytes per character of the
// words, and a few more for pairs; time n log n in their length. Returns empty if stopped.
TrainedBpe train_bpe(const WordCounts& words, const BpeTrainerOptions& options);

}  // namespace fovea
