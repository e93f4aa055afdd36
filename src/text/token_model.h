#pragma once

#include <cstdint>
#include <string_view>
#include <variant>
#include <vector>

namespace fovea {

// A token and the bytes [begin, end) of the encoded stretch that it stands for.
struct Piece {
  int32_t id;
  uint32_t begin, end;
};

// Each model is a struct with
//   void encode(std::string_view stretch, std::vector<Piece>& out) const;
// which appends the tokens of a normalised stretch of text between two cuts of the pre-tokenizer.
// It is safe to call from several threads. The headers are those of the names: whoever creates or
// calls a model includes them all.
struct WordLevelModel;
struct BpeModel;
struct WordPieceModel;
struct UnigramModel;
using TokenModel = std::variant<WordLevelModel, BpeModel, WordPieceModel, UnigramModel>;

}  // namespace fovea
