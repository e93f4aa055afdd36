#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

// Finds the pieces of a vocabulary that a text starts with: a trie of bytes whose edges are in one
// hash table, so that a step is one lookup. If texts are equal, the last one is found; empty texts
// are ignored.
class PieceTrie {
 public:
  static constexpr int32_t absent = -1;
  static constexpr uint32_t root = 0, nowhere = UINT32_MAX;

  explicit PieceTrie(const std::vector<std::string>& texts);

  uint32_t step(uint32_t node, char byte) const {
    const uint64_t key = key_of(node, byte);
    for (size_t at = slot_of(key);; at = (at + 1) & mask_) {
      const uint64_t edge = edges_[at];
      if (edge == kFree) return nowhere;  // checked first: the key of a NUL at the root is also 0
      if (edge >> kNodeBits == key) return static_cast<uint32_t>(edge & (kMostNodes - 1));
    }
  }
  uint32_t walk(uint32_t node, std::string_view text) const;  // takes a step for each byte
  int32_t id_at(uint32_t node) const { return ids_[node]; }   // id of the piece that ends here
  size_t nodes() const { return ids_.size(); }  // a node's number is larger than its parent's
  // Calls on(parent, byte, node) for each node except the root.
  template <class On>
  void for_each_edge(On&& on) const {
    for (const uint64_t edge : edges_) {
      if (edge == kFree) continue;
      const uint64_t key = edge >> kNodeBits;
      on(static_cast<uint32_t>(key >> 8), static_cast<char>(key & 0xFF),
         static_cast<uint32_t>(edge & (kMostNodes - 1)));
    }
  }
  int32_t find(std::string_view text) const {
    const uint32_t node = walk(root, text);
    return node == nowhere ? absent : ids_[node];
  }

 private:
  static constexpr int kNodeBits = 28;  // two nodes and a byte in 64 bits
  static constexpr uint64_t kMostNodes = uint64_t{1} << kNodeBits;
  static constexpr uint64_t kFree = 0;  // no edge leads to the root

  static uint64_t key_of(uint32_t node, char byte) {
    return uint64_t{node} << 8 | static_cast<uint8_t>(byte);
  }
  // Fibonacci hashing: the upper bits of the product with 2^64 / golden ratio.
  size_t slot_of(uint64_t key) const { return (key * 0x9E3779B97F4A7C15u) >> shift_; }
  void insert(std::string_view text, int32_t id);

  std::vector<uint64_t> edges_;  // hash table of keys and target nodes; its size is a power of two
  std::vector<int32_t> ids_;     // by node
  size_t mask_ = 0;
  int shift_ = 0;
};

}  // namespace fovea::text
