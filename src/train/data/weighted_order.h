#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace fovea::train {

// Items [begin, end), each of which an epoch contains `weight` times. For a fraction of a weight,
// each epoch draws this fraction of the items.
struct WeightedGroup {
  int64_t begin, end;
  double weight;

  // Returns the number of items in an epoch.
  int64_t count() const;
};

// Returns the items of an epoch in a random order. `key(0)` is the key of the order, and key(g + 1)
// that of the items that are drawn from group g (see Permutation).
std::vector<int64_t> weighted_order(const std::vector<WeightedGroup>& groups,
                                    const std::function<uint64_t(size_t which)>& key);

// The items of all epochs, one epoch after another. Keeps the order of one epoch: use it from one
// thread.
class WeightedItems {
 public:
  // `key(epoch, which)`: see weighted_order(). Throws InvalidArgument if an epoch has no item.
  WeightedItems(std::vector<WeightedGroup> groups,
                std::function<uint64_t(int64_t epoch, size_t which)> key);

  int64_t per_epoch() const { return per_epoch_; }
  int64_t operator[](int64_t i) const;  // item i, counted across epochs
  const std::vector<WeightedGroup>& groups() const { return groups_; }

 private:
  std::vector<WeightedGroup> groups_;
  std::function<uint64_t(int64_t epoch, size_t which)> key_;
  int64_t per_epoch_ = 0;
  mutable int64_t epoch_ = -1;  // of order_
  mutable std::vector<int64_t> order_;
};

}  // namespace fovea::train
