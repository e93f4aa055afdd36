#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fovea {

// From the text of a vocabulary's piece to its id: open addressing over one block of bytes. Of
// equal texts the last one counts; an empty text is no piece.
class PieceTable {
 public:
  static constexpr int32_t absent = -1;

  PieceTable() = default;
  explicit PieceTable(const std::vector<std::string>& texts);

  int32_t find(std::string_view text) const;
  size_t size() const { return size_; }  // different texts

 private:
  struct Slot {
    uint32_t tag = 0;     // the upper half of the text's hash
    int32_t id = absent;  // an absent one is a free slot
  };
  // The slot that holds the text, or the free one where it would go.
  size_t slot_of(std::string_view text, uint64_t hash) const;
  std::string_view text_of(int32_t id) const;

  std::vector<Slot> slots_;       // a power of two, at most half full
  std::vector<uint64_t> begins_;  // by id, into bytes_; one more at the end
  std::string bytes_;
  size_t size_ = 0;
};

}  // namespace fovea
