#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "tokenizer/added_tokens.h"
#include "tokenizer/models/bpe.h"
#include "tokenizer/models/characters.h"
#include "tokenizer/models/piece_table.h"
#include "tokenizer/models/unigram.h"
#include "tokenizer/models/word_level.h"
#include "tokenizer/models/wordpiece.h"
#include "tokenizer/pipeline/decoders.h"
#include "tokenizer/pipeline/normalizers.h"
#include "tokenizer/pipeline/post_processors.h"
#include "tokenizer/pipeline/pre_tokenizers.h"

namespace fovea {

struct TokenizerFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json; may be empty
  // Names and contents of files in older formats that tokenizer.json cannot represent; these files
  // are saved instead of tokenizer.json.
  std::vector<std::pair<std::string, std::string>> originals = {};
};

using AnyModel =
    std::variant<CharacterModel, WordLevelModel, BpeModel, WordPieceModel, UnigramModel>;

// The state that copies of a Tokenizer share.
struct TokenizerState {
  std::vector<std::string> texts;  // by id
  std::vector<bool> special;       // by id
  // The texts to which added tokens are decoded if normalisation changed them, as in Hugging Face.
  std::unordered_map<int32_t, std::string> normalized_texts;
  PieceTable ids;  // by text
  AddedTokenFinder raw_added, normalized_added;

  Normalizers normalizers;
  PreTokenizers pre_tokenizers;
  AnyModel model;
  PostProcessors post_processors;
  Decoders decoders;
  std::optional<Truncation> truncation;
  std::optional<Padding> padding;

  std::optional<int32_t> unknown, bos, eos;
  bool unknown_as_written = false;  // unknown tokens have their original text
  bool needs_origins = false;       // whether ids depend on the position of a piece in the text
  uint64_t number = 0;              // identifies this tokenizer in caches
  TokenizerFiles files;             // as read or created; save() writes them
};

// The paths are for error messages.
std::shared_ptr<const TokenizerState> parse_tokenizer(TokenizerFiles files, const std::string& path,
                                                      const std::string& config_path);

}  // namespace fovea
