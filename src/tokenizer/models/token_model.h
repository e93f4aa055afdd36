#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fovea {

// A token and the bytes [begin, end) of the encoded stretch that it stands for.
struct Piece {
  int32_t id;
  uint32_t begin, end;
};

// Which ids are special tokens. A model cuts a text into them as into any other where special
// tokens of a text are parsed, as Hugging Face's does, and never where they are plain text.
class SpecialIds {
 public:
  SpecialIds() = default;
  explicit SpecialIds(std::vector<bool> special) : special_(std::move(special)) {}
  // Whether the id is one that the text must not become.
  bool hides(int32_t id, bool parsed) const {
    return !parsed && static_cast<size_t>(id) < special_.size() &&
           special_[static_cast<size_t>(id)];
  }

 private:
  std::vector<bool> special_;  // by id; those beyond its end are not special
};

// Each model is a struct with
//   void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;
// which appends the tokens of a normalised stretch of text between two cuts of the pre-tokenizer.
// `parsed`: the text may become special tokens.
// It is safe to call from several threads. The headers are those of the names: whoever creates or
// calls a model includes them all.
struct WordLevelModel;
struct BpeModel;
struct WordPieceModel;
struct UnigramModel;
using TokenModel = std::variant<WordLevelModel, BpeModel, WordPieceModel, UnigramModel>;

}  // namespace fovea
