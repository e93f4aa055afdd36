#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "text/characters.h"

namespace fovea {

// A token that is found in the text before the model sees it, if it is asked for or not special.
struct AddedToken {
  std::string text;
  int32_t id;
  bool special;
};

// What a Tokenizer handle shares. `model` turns a stretch of text between added tokens into ids; it is the one part that
// differs between kinds of tokenizers, so another kind makes it a variant.
struct TokenizerState {
  std::vector<std::string> texts;  // by id
  std::vector<AddedToken> added;
  CharacterModel model;
  std::optional<int32_t> unknown, bos, eos;
  std::string tokenizer_json, config_json;  // as read or made, and as saved

  bool is_special(int32_t id) const;
};

// Builds the state out of the two files' content; `config_json` may be empty. `path` is for messages.
std::shared_ptr<const TokenizerState> parse_tokenizer(std::string tokenizer_json,
                                                      std::string config_json,
                                                      const std::filesystem::path& path);

// The two files of a character tokenizer. `characters` in the order of their ids.
struct TokenizerFiles {
  std::string tokenizer_json, config_json;
};
TokenizerFiles character_tokenizer_files(const std::vector<char32_t>& characters,
                                         const CharacterTrainer::Options& options);

}  // namespace fovea
