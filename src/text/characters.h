#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "fovea/tokenizer.h"

namespace fovea {

// One token per character (code point). A look-up in two steps: its page of 256 code points, then
// its place in the page.
class CharacterModel {
 public:
  static constexpr int32_t absent = -1;

  CharacterModel();

  void add(char32_t code_point, int32_t id);
  int32_t id_of(char32_t code_point) const;  // or `absent`

  // Appends the ids of the text's characters, `unknown` for one that has none; where `unknown` is
  // absent, it is left out.
  void encode(std::string_view text, int32_t unknown, std::vector<int32_t>& ids) const;
  void tokens(std::string_view text, int32_t unknown, std::vector<Token>& tokens) const;

 private:
  // By code point / 256; empty where no character of the page has an id.
  std::vector<std::vector<int32_t>> pages_;
};

}  // namespace fovea
