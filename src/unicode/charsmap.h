#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "unicode/aligned_text.h"

namespace fovea {

// The normalizer that a SentencePiece model carries ("Precompiled"): rules from characters to texts
// in a double-array trie (Darts). Layout: the trie's size in bytes, its units of 32 bits, then the
// texts, each ending with NUL.
class Charsmap {
 public:
  // BadFile, for the file named, if it is damaged.
  static Charsmap parse(std::string_view bytes, const std::string& where);

  void normalize(AlignedText& text) const;

 private:
  // What the shortest rule that starts a text makes of it.
  std::optional<std::string_view> find(std::string_view text) const;
  template <class Instead>
  void rewrite_cluster(std::string_view cluster, Instead&& instead) const;
  size_t plain_prefix(std::string_view text) const;

  std::vector<uint32_t> units_;
  std::string texts_;
  std::array<bool, 128> plain_{};  // ASCII characters without a rule
};

}  // namespace fovea
