#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace fovea::text {

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
  // Returns whether a model must not produce this id.
  bool hides(int32_t id, bool parsed) const {
    return !parsed && static_cast<size_t>(id) < special_.size() &&
           special_[static_cast<size_t>(id)];
  }

 private:
  std::vector<bool> special_;  // by id; ids beyond the end are not special
};

}  // namespace fovea::text
