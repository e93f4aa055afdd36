#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fovea {

// A token and the bytes [begin, end) that it covers in the encoded stretch of text.
struct Piece {
  int32_t id;
  uint32_t begin, end;
};

// The ids of special tokens. A model may produce them only if the special tokens in the text are
// parsed, as in Hugging Face.
class SpecialIds {
 public:
  SpecialIds() = default;
  explicit SpecialIds(std::vector<bool> special) : special_(std::move(special)) {}
  // Whether a text must not become this id.
  bool hides(int32_t id, bool parsed) const {
    return !parsed && static_cast<size_t>(id) < special_.size() &&
           special_[static_cast<size_t>(id)];
  }

 private:
  std::vector<bool> special_;  // by id; ids beyond the end are not special
};

// Each model is a struct with
//   void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;
// which appends the tokens of a stretch of normalised text that the pre-tokenizer does not split
// further. `parsed`: whether the text may become special tokens. Several threads may call encode()
// at the same time. Code that creates or calls a model includes the model's own header.
struct WordLevelModel;
struct BpeModel;
struct WordPieceModel;
struct UnigramModel;
using TokenModel = std::variant<WordLevelModel, BpeModel, WordPieceModel, UnigramModel>;

}  // namespace fovea
