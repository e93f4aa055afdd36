#pragma once

// The order in which the sums of units (kernels.h), and then of the passes of a step, are added: a
// balanced binary tree over their indices. It depends on nothing else, so 8 units of one pass are
// added in the same order as 2 passes of 4 units each.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace fovea {

// Sums arrive in ascending order of index and are held on a stack. Whenever the top two are the
// complete halves of a node, the upper one is added to the lower one: merge(slot) must add the sum
// at stack position `slot` to the one at `slot - 1`. An index may be missing: its sum counts as
// 0, and its parent node has one child.
class SumTree {
 public:
  static constexpr int kMost = 65;  // sums that are ever held
  // Returns the largest number of sums held at a time, for indices below `count`.
  static constexpr int slots(int64_t count) { return width(count > 0 ? count - 1 : 0) + 1; }
  // The same, if merge_complete() follows each sum. The sum that arrives is not counted while it is
  // the second half of a node.
  static constexpr int slots_if_merged(int64_t count) { return width(count + 1) - 1; }

  // Performs the merges that precede the sum of `index`, and returns that sum's stack position.
  template <class Merge>
  constexpr int next(int64_t index, const Merge& merge) {
    while (held_ > 1 && level(held_ - 2, indices_[held_ - 1]) < level(held_ - 1, index)) pop(merge);
    indices_[held_] = index;
    return held_++;
  }

  // Performs the merges of the nodes that the last sum completes, which precede any later sum.
  template <class Merge>
  void merge_complete(const Merge& merge) {
    for (int merges = merges_before(indices_[held_ - 1] + 1); merges > 0; --merges) pop(merge);
  }

  // Returns the stack position of the sum that arrived last.
  int last() const { return held_ - 1; }

  // Returns the number of merges before a sum of `index`, which must be greater than the last
  // index: the top sum is merged this many times. A caller that performs these merges itself then
  // calls merged().
  int merges_before(int64_t index) const {
    int64_t top = indices_[held_ - 1];
    int merges = 0;
    for (int slot = held_ - 1; slot > 0 && width(indices_[slot - 1] ^ top) < width(top ^ index);
         --slot)
      ++merges;
    return merges;
  }
  int merges_at_end() const { return held_ - 1; }
  void merged(int merges) {
    held_ -= merges;
    indices_[held_ - 1] = indices_[held_ - 1 + merges];
  }

  // Leaves the total at stack position 0; returns false if no sum has arrived.
  template <class Merge>
  constexpr bool finish(const Merge& merge) {
    while (held_ > 1) pop(merge);
    const bool any = held_ > 0;
    held_ = 0;
    return any;
  }

 private:
  static constexpr int width(int64_t number) {
    return 64 - std::countl_zero(static_cast<uint64_t>(number));
  }
  // Returns the level of the smallest node that contains both the sum at `slot` and `index`.
  constexpr int level(int slot, int64_t index) const { return width(indices_[slot] ^ index); }
  template <class Merge>
  constexpr void pop(const Merge& merge) {
    merge(--held_);
    indices_[held_ - 1] = indices_[held_];
  }

  int held_ = 0;
  int64_t indices_[kMost];  // the last index that each held sum includes
};

inline double tree_sum(const std::vector<double>& numbers) {
  double sums[65] = {};
  const auto merge = [&](int slot) { sums[slot - 1] += sums[slot]; };
  SumTree tree;
  for (std::size_t i = 0; i < numbers.size(); ++i)
    sums[tree.next(static_cast<int64_t>(i), merge)] = numbers[i];
  tree.finish(merge);
  return sums[0];
}

}  // namespace fovea
