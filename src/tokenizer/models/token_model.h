#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace fovea {

// A token and the bytes [begin, end) of the encoded stretch that it covers.
struct Piece {
  int32_t id;
  uint32_t begin, end;
};

// Marks the ids of special tokens. If special tokens of a text are parsed, a model may produce
// them, as in Hugging Face; never if the text is plain.
class SpecialIds {
 public:
  SpecialIds() = default;
  explicit SpecialIds(std::vector<bool> special) : special_(std::move(special)) {}
  // Whether the text must not become this id.
  bool hides(int32_t id, bool parsed) const {
    return !parsed && static_cast<size_t>(id) < special_.size() &&
           special_[static_cast<size_t>(id)];
  }

 private:
  std::vector<bool> special_;  // by id; ids after its end are not special
};

// Each model is a struct with
//   void encode(std::string_view stretch, std::vector<Piece>& out, bool parsed = false) const;
// which appends the tokens of a normalised stretch of text between two cuts of the pre-tokenizer.
// `parsed`: the text may become special tokens. Safe to call from several threads. Code that
// creates or calls a model includes the header of its name.
struct WordLevelModel;
struct BpeModel;
struct WordPieceModel;
struct UnigramModel;
using TokenModel = std::variant<WordLevelModel, BpeModel, WordPieceModel, UnigramModel>;

}  // namespace fovea
