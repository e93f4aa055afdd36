#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

struct CharacterTrainerOptions {
  int64_t vocabulary = 0;           // at most so many tokens, special ones included; 0 = all
  bool separate_documents = false;  // add "<|endoftext|>", the end-of-sequence token
  int64_t context = 0;              // model_max_length in tokenizer_config.json; 0 = no limit
};

// Finds the characters of a text that is too large to hold: memory is bounded by Unicode, one
// counter per code point.
class CharacterTrainer {
 public:
  CharacterTrainer();
  void add(std::string_view text);  // valid UTF-8

  // Tokens: the characters in the order of their code points, then "<unk>", then "<|endoftext|>".
  Tokenizer train(const CharacterTrainerOptions& options = {}) const;

 private:
  std::vector<char32_t> characters(int64_t limit) const;  // the most frequent ones, sorted

  std::vector<int64_t> counts_;  // by code point
};

}  // namespace fovea
