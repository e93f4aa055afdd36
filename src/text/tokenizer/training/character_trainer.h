#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/text/tokenizer.h"

namespace fovea::text {

struct CharacterTrainerOptions {
  int64_t vocabulary = 0;           // maximum tokens, including special ones; 0 = no limit
  bool separate_documents = false;  // add "<|endoftext|>", the end-of-sequence token
  int64_t context = 0;              // model_max_length in tokenizer_config.json; 0 = no limit
};

// Counts the characters of a text of any size. The memory is one counter per Unicode code point.
class CharacterTrainer {
 public:
  CharacterTrainer();
  void add(std::string_view text);  // must be valid UTF-8

  // The tokens are the characters ordered by code point, then "<unk>", then, if documents are
  // separate, "<|endoftext|>".
  Tokenizer train(const CharacterTrainerOptions& options = {}) const;

 private:
  std::vector<char32_t> characters(int64_t limit) const;  // the most frequent, by code point

  std::vector<int64_t> counts_;  // by code point
};

}  // namespace fovea::text
