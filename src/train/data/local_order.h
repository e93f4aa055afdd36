#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "data/weighted_order.h"

namespace fovea::train {

// The order of the items of all epochs, one epoch after another, in constant memory. As in
// WeightedItems, an epoch contains each item of a group `weight` times; of a fraction of a weight,
// it draws evenly spaced items.
//
// An epoch of at most `most` items is one permutation of them. A longer one is divided into parts
// of nearly equal size, and each part is a permutation of items that are close to each other in
// their groups, so that a file of any size is read in few places at a time: a part has the share of
// every group, in about 16 blocks of consecutive items, and each epoch draws new blocks.
class LocalOrder {
 public:
  // `key(epoch, which)` returns the keys of an epoch's permutations (see Permutation); that of
  // the first part is key(epoch, 0). Throws InvalidArgument if an epoch has no item.
  LocalOrder(std::vector<WeightedGroup> groups, int64_t most,
             std::function<uint64_t(int64_t epoch, uint32_t which)> key);

  int64_t per_epoch() const { return per_epoch_; }
  int64_t operator[](int64_t i) const;  // item i, counted across epochs

 private:
  int64_t begin_of(int64_t part) const;  // the number of items before this part of an epoch
  int64_t item(int64_t epoch, size_t group, int64_t n) const;

  std::vector<WeightedGroup> groups_;
  std::vector<int64_t> counts_;  // items of each group in an epoch
  std::function<uint64_t(int64_t epoch, uint32_t which)> key_;
  int64_t per_epoch_ = 0, parts_ = 1;
};

}  // namespace fovea::train
