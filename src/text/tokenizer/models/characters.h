#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/models/token_model.h"

namespace fovea::text {

// One token per character (code point), like a BPE without merges. A lookup has two steps: the page
// of 256 code points, then the index in the page.
class CharacterModel {
 public:
  static constexpr int32_t absent = -1;

  // `unknown` is the id of unknown characters; if it is `absent`, they are omitted.
  explicit CharacterModel(int32_t unknown = absent);

  void add(char32_t code_point, int32_t id);
  int32_t id_of(char32_t code_point) const;  // or `absent`

  // encode() appends the text's tokens, ids() only their ids.
  void encode(std::string_view text, std::vector<Piece>& pieces, bool parsed = false) const;
  void ids(std::string_view text, std::vector<int32_t>& ids) const;

 private:
  // Pages by code point / 256; empty if no character of the page has an id.
  std::vector<std::vector<int32_t>> pages_;
  int32_t unknown_;
};

}  // namespace fovea::text
