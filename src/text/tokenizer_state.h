#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/characters.h"

namespace fovea {

// A token that is looked for in the text before the model sees it: if it is not special, or if
// special tokens are parsed.
struct AddedToken {
  std::string text;
  int32_t id;
  bool special;
};

struct TokenizerFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json; may be empty
};

// What a Tokenizer handle shares. `model` turns the text between added tokens into ids; it is the
// one part that differs between kinds of tokenizers, so another kind makes it a variant.
struct TokenizerState {
  std::vector<std::string> texts;  // by id
  std::vector<AddedToken> added;
  CharacterModel model;
  std::optional<int32_t> unknown, bos, eos;
  TokenizerFiles files;  // as read or made, and as saved
};

// The paths are for messages.
std::shared_ptr<const TokenizerState> parse_tokenizer(TokenizerFiles files, const std::string& path,
                                                      const std::string& config_path);

}  // namespace fovea
