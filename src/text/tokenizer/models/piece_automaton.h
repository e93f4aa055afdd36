#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/models/piece_trie.h"

namespace fovea::text {

// Finds which pieces of a vocabulary end at each byte of a text, in one pass whatever the lengths
// of the pieces: a trie in which each node links to its longest proper suffix (Aho and Corasick
// 1975, https://doi.org/10.1145/360825.360855).
class PieceAutomaton {
 public:
  static constexpr uint32_t root = PieceTrie::root;

  explicit PieceAutomaton(const std::vector<std::string>& texts);

  // Returns the state after one more byte: the longest suffix of the text that is a prefix of a
  // piece.
  uint32_t step(uint32_t state, char byte) const {
    uint32_t next;
    while ((next = trie_.step(state, byte)) == PieceTrie::nowhere && state != root)
      state = suffix_[state];
    return next == PieceTrie::nowhere ? root : next;
  }
  // Returns the state of the longest piece that is a suffix of the text read so far; root if there
  // is none.
  uint32_t longest(uint32_t state) const {
    return trie_.id_at(state) != PieceTrie::absent ? state : shorter_[state];
  }
  uint32_t shorter(uint32_t piece) const { return shorter_[piece]; }  // next shorter piece, or root
  int32_t id_at(uint32_t piece) const { return trie_.id_at(piece); }
  uint32_t length_of(int32_t id) const { return lengths_[static_cast<size_t>(id)]; }

  const PieceTrie& trie() const { return trie_; }

 private:
  PieceTrie trie_;
  std::vector<uint32_t> lengths_;  // by id
  std::vector<uint32_t> suffix_;   // by node: the longest proper suffix that is a node
  std::vector<uint32_t> shorter_;  // by node: the longest proper suffix that is a piece, or root
};

}  // namespace fovea::text
