#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/piece_table.h"
#include "tokenizer/models/token_model.h"

namespace fovea::text {

struct WordLevelOptions {
  std::vector<std::string> texts = {};  // by id
  std::string unk = {};
  SpecialIds special = {};
};

// Encodes a stretch as one token: the token with its text, or the unknown token. encode() throws
// BadFile if neither is in the vocabulary.
struct WordLevelModel {
  explicit WordLevelModel(WordLevelOptions options);
  void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;

 private:
  PieceTable table_;
  std::string unk_;
  int32_t unk_id_;
  SpecialIds special_;
};

// Throws BadFile: the vocabulary has neither the stretch nor the unknown token `unk`.
[[noreturn]] void fail_without_unknown(std::string_view stretch, std::string_view unk);

}  // namespace fovea::text
