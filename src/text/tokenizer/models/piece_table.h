#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea::text {

// Maps the text of a piece to its id, by open addressing; all texts are in one block of bytes. If
// texts are equal, the last one is found; empty texts are ignored.
class PieceTable {
 public:
  static constexpr int32_t absent = -1;

  PieceTable() = default;
  explicit PieceTable(const std::vector<std::string>& texts);

  int32_t find(std::string_view text) const;
  size_t size() const { return size_; }  // distinct texts

 private:
  struct Slot {
    uint32_t tag = 0;     // the upper half of the text's hash
    int32_t id = absent;  // `absent` marks a free slot
  };
  // Returns the slot of the text, or the free slot where it would be inserted.
  size_t slot_of(std::string_view text, uint64_t hash) const;
  std::string_view text_of(int32_t id) const;

  std::vector<Slot> slots_;       // their number is a power of two; at most half full
  std::vector<uint64_t> begins_;  // by id: offset in bytes_; the last element is the size of bytes_
  std::string bytes_;
  size_t size_ = 0;
};

}  // namespace fovea::text
