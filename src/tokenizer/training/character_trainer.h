#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

struct CharacterTrainerOptions {
  int64_t vocabulary = 0;           // the most tokens, including special ones; 0 = all
  bool separate_documents = false;  // add "<|endoftext|>", the end-of-sequence token
  int64_t context = 0;              // model_max_length in tokenizer_config.json; 0 = no limit
};

// Collects the characters of a text of any size: memory is bounded by Unicode, with one counter per
// code point.
class CharacterTrainer {
 public:
  CharacterTrainer();
  void add(std::string_view text);  // valid UTF-8

  // Tokens: the characters ordered by code point, then "<unk>", then "<|endoftext|>".
  Tokenizer train(const CharacterTrainerOptions& options = {}) const;

 private:
  std::vector<char32_t> characters(int64_t limit) const;  // the most frequent ones, sorted

  std::vector<int64_t> counts_;  // by code point
};

}  // namespace fovea
