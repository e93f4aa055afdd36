#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/aligned_text.h"

namespace fovea::text {

// The normalizer of a SentencePiece model ("Precompiled"): rules that map characters to
// replacements, in a double-array trie (Darts). Layout: the trie's size in bytes, its units of 32
// bits, then the replacements, each terminated by NUL.
class Charsmap {
 public:
  // Throws BadFile, naming `where`, if the data is damaged.
  static Charsmap parse(std::string_view bytes, const std::string& where);

  void normalize(AlignedText& text) const;

 private:
  // Returns the replacement of the shortest rule that is a prefix of the text; empty if there is
  // none.
  std::optional<std::string_view> find(std::string_view text) const;
  template <class Instead>
  void rewrite_cluster(std::string_view cluster, Instead&& instead) const;
  size_t plain_prefix(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string texts_;
  std::array<bool, 128> plain_{};  // ASCII characters without a rule
};

}  // namespace fovea::text
