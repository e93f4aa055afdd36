#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

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
#include "tokenizer/state/added_tokens.h"

namespace fovea::text {

struct TokenizerFiles {
  std::string tokenizer;  // tokenizer.json
  std::string config;     // tokenizer_config.json; may be empty
  // Names and contents of files in older formats that tokenizer.json cannot represent; these files
  // are saved instead of tokenizer.json.
  std::vector<std::pair<std::string, std::string>> originals = {};
};

// Each model is a class with
//   void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;
// which appends the tokens of a stretch of normalised text that the pre-tokenizer does not split
// further. `parsed`: whether the text may become special tokens. Several threads may call encode()
// at the same time.
using AnyModel =
    std::variant<CharacterModel, WordLevelModel, BpeModel, WordPieceModel, UnigramModel>;

// The state that copies of a Tokenizer share.
struct TokenizerState {
  std::vector<std::string> texts;  // by id
  std::vector<bool> special;       // by id
  // By id: the text of an added token after normalisation, if that changes it. The token is decoded
  // to this text, as in Hugging Face.
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
  bool unknown_as_written = false;  // whether unknown tokens have the text that they cover
  bool needs_origins = false;       // whether ids depend on the position of a piece in the text
  uint64_t number = 0;              // identifies this tokenizer in caches; unique in the process
  TokenizerFiles files;             // as read or created; save() writes them
};

// Parses the files; the paths are for error messages. Throws BadFile if a file is damaged,
// Unsupported for a component that fovea does not support.
std::shared_ptr<const TokenizerState> parse_tokenizer(TokenizerFiles files, const std::string& path,
                                                      const std::string& config_path);

}  // namespace fovea::text
