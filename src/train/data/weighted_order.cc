#include "data/weighted_order.h"

#include <cmath>

#include "base/error.h"
#include "data/permutation.h"

namespace fovea::train {
namespace {

// Returns how many items of a group an epoch draws for the fraction of its weight.
int64_t drawn_of(const WeightedGroup& group) {
  return std::llround((group.weight - std::floor(group.weight)) *
                      static_cast<double>(group.end - group.begin));
}

}  // namespace

int64_t WeightedGroup::count() const {
  return static_cast<int64_t>(std::floor(weight)) * (end - begin) + drawn_of(*this);
}

std::vector<int64_t> weighted_order(const std::vector<WeightedGroup>& groups,
                                    const std::function<uint64_t(size_t which)>& key) {
  std::vector<int64_t> items;
  for (size_t g = 0; g < groups.size(); ++g) {
    const auto& [begin, end, weight] = groups[g];
    for (double copy = 0; copy < std::floor(weight); ++copy)
      for (int64_t item = begin; item < end; ++item) items.push_back(item);
    const int64_t drawn = drawn_of(groups[g]);
    if (drawn == 0) continue;
    const Permutation draw(static_cast<uint64_t>(end - begin), key(g + 1));
    for (int64_t i = 0; i < drawn; ++i)
      items.push_back(begin + static_cast<int64_t>(draw(static_cast<uint64_t>(i))));
  }
  if (items.empty()) return {};
  const Permutation turns(items.size(), key(0));
  std::vector<int64_t> shuffled(items.size());
  for (size_t i = 0; i < items.size(); ++i) shuffled[i] = items[turns(i)];
  return shuffled;
}

WeightedItems::WeightedItems(std::vector<WeightedGroup> groups,
                             std::function<uint64_t(int64_t epoch, size_t which)> key)
    : groups_(std::move(groups)), key_(std::move(key)) {
  for (const WeightedGroup& group : groups_) per_epoch_ += group.count();
  check(per_epoch_ > 0, "data: an epoch contains no text; expected larger weights of the files");
}

int64_t WeightedItems::operator[](int64_t i) const {
  const int64_t epoch = i / per_epoch_;
  if (epoch != epoch_)
    order_ = weighted_order(groups_, [&](size_t which) { return key_(epoch, which); });
  epoch_ = epoch;
  return order_[static_cast<size_t>(i % per_epoch_)];
}

}  // namespace fovea::train
