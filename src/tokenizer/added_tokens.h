#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/aligned_text.h"

namespace fovea {

// A token that is looked for in the text before the model sees it. The flags are those of
// tokenizer.json: `normalized` ones are looked for in the normalised text.
struct AddedToken {
  std::string text;
  int32_t id;
  bool special, single_word, strip_left, strip_right, normalized;
};

// A part of a text: an added token, or what lies between them.
struct AddedPart {
  Span span;
  int32_t token;  // or -1
};

// Finds the leftmost token, of those that start together the longest: one step in a tree of bytes
// after the other from each place where a token may start. Tokens have at most 1024 bytes, so that
// the time is bounded by the text's length.
class AddedTokenFinder {
 public:
  static constexpr size_t length_limit = 1024;

  // `text` is what to look for, which normalisation may have made different from the token's text.
  void add(const AddedToken& token, std::string_view text);
  bool empty() const { return tokens_.empty(); }

  // Appends the parts of the text; special tokens are left in the text around them unless wanted.
  void cut(std::string_view text, bool special, std::vector<AddedPart>& parts) const;

 private:
  struct Node {
    int32_t child = -1, sibling = -1;  // places in nodes_
    int32_t token = -1;                // place in tokens_
    uint8_t byte = 0;
  };
  struct Flags {
    int32_t id;
    bool special, single_word, strip_left, strip_right;
  };
  struct Found {
    const Flags* token;
    size_t end;
  };
  int32_t child(int32_t node, uint8_t byte) const;
  size_t next_start(std::string_view text, size_t i) const;
  Found find_at(std::string_view text, size_t i) const;

  std::vector<Node> nodes_{1};
  std::array<int32_t, 256> first_{};  // the root's children
  std::vector<Flags> tokens_;
  int starts_ = 0;       // different first bytes
  char only_start_ = 0;  // the one, if there is just one
};

}  // namespace fovea
