#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/aligned_text.h"

namespace fovea::text {

// A token that is searched for before the model splits the text. The flags are those of
// tokenizer.json (strip_left is lstrip). If `normalized` is set, the token is searched for in the
// normalised text, otherwise in the raw text. `leading`: it is a token only at the text's
// beginning.
struct AddedToken {
  std::string text;
  int32_t id;
  bool special, single_word, strip_left, strip_right, normalized, leading = false;
};

// A part of a text: an added token, or the text between two added tokens.
struct AddedPart {
  Span span;
  int32_t token;  // its id; -1 for text
};

// Finds the leftmost token; if several start at the same position, the longest. Follows a trie of
// bytes from each position where a token may start. Tokens have at most 1024 bytes, so the time is
// linear in the text's length.
class AddedTokenFinder {
 public:
  static constexpr size_t length_limit = 1024;

  // Adds a token that is searched for as `text`: the token's own text, or its normalised form.
  void add(const AddedToken& token, std::string_view text);
  bool empty() const { return tokens_.empty(); }

  // Appends the parts of the text. Unless `special` is true, special tokens remain part of the text
  // around them.
  void cut(std::string_view text, bool special, std::vector<AddedPart>& parts) const;

 private:
  struct Node {
    int32_t child = -1, sibling = -1;  // indices in nodes_
    int32_t token = -1;                // index in tokens_
    uint8_t byte = 0;
  };
  struct Flags {
    int32_t id;
    bool special, single_word, strip_left, strip_right, leading;
  };
  struct Found {
    const Flags* token;
    size_t end;
  };
  int32_t child(int32_t node, uint8_t byte) const;
  size_t next_start(std::string_view text, size_t i) const;
  Found find_at(std::string_view text, size_t i) const;

  std::vector<Node> nodes_{1};
  std::array<int32_t, 256> first_{};  // the root's child by byte; 0 if none
  std::vector<Flags> tokens_;
  int starts_ = 0;       // number of different first bytes
  char only_start_ = 0;  // the first byte, if there is only one
};

}  // namespace fovea::text
