#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fovea::text {

// The result of merging two adjacent pieces, and the rank of the merge: the lowest rank is merged
// first.
struct PairMerge {
  static constexpr uint32_t none = UINT32_MAX;
  uint32_t rank;
  int32_t id;
};

// Maps a pair of ids to its merge, by open addressing; most lookups take one probe.
class PairTable {
 public:
  explicit PairTable(size_t pairs)
      : slots_(std::bit_ceil(2 * pairs + 2)),
        mask_(slots_.size() - 1),
        shift_(64 - std::countr_zero(slots_.size())) {}

  // Call it at most `pairs` times (see the constructor). The last entry of a pair is used.
  void set(int32_t left, int32_t right, PairMerge merge) {
    const uint64_t key = key_of(left, right);
    Slot& slot = slots_[slot_of(key)];
    slot = {key, merge};
  }

  PairMerge find(int32_t left, int32_t right) const {
    return slots_[slot_of(key_of(left, right))].merge;
  }

 private:
  struct Slot {
    uint64_t key = 0;
    PairMerge merge = {PairMerge::none, 0};  // rank `none`: a free slot
  };

  static uint64_t key_of(int32_t left, int32_t right) {
    return uint64_t{static_cast<uint32_t>(left)} << 32 | static_cast<uint32_t>(right);
  }
  // Fibonacci hashing; the halves are mixed first, so that both affect the upper bits.
  size_t slot_of(uint64_t key) const {
    const uint64_t mixed = key ^ key >> 29;
    size_t at = (mixed * 0x9E3779B97F4A7C15u) >> shift_;
    while (slots_[at].merge.rank != PairMerge::none && slots_[at].key != key) at = (at + 1) & mask_;
    return at;
  }

  std::vector<Slot> slots_;  // their number is a power of two; at most half full
  size_t mask_;
  int shift_;
};

}  // namespace fovea::text
