#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

// One token per character (code point). A look-up in two steps: its page of 256 code points, then
// its place in the page.
class CharacterModel {
 public:
  static constexpr int32_t absent = -1;

  CharacterModel();

  void add(char32_t code_point, int32_t id);
  int32_t id_of(char32_t code_point) const;  // or `absent`

  // Appends the ids of the text's characters, `unknown` for one that has none; where `unknown` is
  // absent, it is left out.
  void encode(std::string_view text, int32_t unknown, std::vector<int32_t>& ids) const;

 private:
  std::vector<std::vector<int32_t>>
      pages_;  // by code point / 256; empty where no character of the page has an id
};

// Finds the vocabulary of a text that is too large to hold. Memory is bounded by Unicode: one
// counter per code point.
class CharacterTrainer {
 public:
  struct Options {
    int64_t vocabulary =
        0;  // at most so many tokens, the special ones included: the most frequent stay; 0 = all
    bool separates_documents = false;  // add "<|endoftext|>"
    int64_t context = 0;               // model_max_length of the files; 0 = without a limit
  };

  CharacterTrainer();
  void add(std::string_view text);  // valid UTF-8
  // Tokens in the order of their code points, then "<unk>", then "<|endoftext|>".
  Tokenizer train(const Options& options) const;

 private:
  std::vector<int64_t> counts_;  // by code point
};

}  // namespace fovea
