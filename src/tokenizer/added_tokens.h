#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/aligned_text.h"

namespace fovea {

// A token that is searched in the text before the model splits it. The flags are those of
// tokenizer.json: `normalized` tokens are searched in the normalised text.
struct AddedToken {
  std::string text;
  int32_t id;
  bool special, single_word, strip_left, strip_right, normalized;
};

// A part of a text: an added token, or the text between two of them.
struct AddedPart {
  Span span;
  int32_t token;  // or -1
};

// Finds the leftmost token, and of those that start together the longest, by walking a tree of
// bytes from each position where a token may start. Tokens have at most 1024 bytes, so the time is
// bounded by the text's length.
class AddedTokenFinder {
 public:
  static constexpr size_t length_limit = 1024;

  // Searches for `text`, which normalisation may have changed from the token's text.
  void add(const AddedToken& token, std::string_view text);
  bool empty() const { return tokens_.empty(); }

  // Appends the parts of the text. Unless `special`, special tokens remain part of the text around
  // them.
  void cut(std::string_view text, bool special, std::vector<AddedPart>& parts) const;

 private:
  struct Node {
    int32_t child = -1, sibling = -1;  // indices in nodes_
    int32_t token = -1;                // index in tokens_
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
  int starts_ = 0;       // number of different first bytes
  char only_start_ = 0;  // the first byte, if there is only one
};

}  // namespace fovea
