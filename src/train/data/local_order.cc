#include "data/local_order.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "data/permutation.h"

namespace fovea::train {
namespace {

constexpr int64_t kBlocks = 16;               // of a group in a part
constexpr uint32_t kKeysOfGroups = 1u << 23;  // the keys before it are those of parts
constexpr uint32_t kKeysOfGroup = 2;          // of its blocks, and of the items that are drawn

}  // namespace

LocalOrder::LocalOrder(std::vector<WeightedGroup> groups, int64_t most,
                       std::function<uint64_t(int64_t epoch, uint32_t which)> key)
    : groups_(std::move(groups)), key_(std::move(key)) {
  for (const WeightedGroup& group : groups_) {
    counts_.push_back(group.count());
    per_epoch_ += counts_.back();
  }
  check(per_epoch_ > 0, "data: an epoch contains no text; expected larger weights of the files");
  parts_ = (per_epoch_ + most - 1) / most;
}

int64_t LocalOrder::begin_of(int64_t part) const {
  int64_t begin = 0;
  for (const int64_t count : counts_) begin += part * count / parts_;
  return begin;
}

int64_t LocalOrder::operator[](int64_t i) const {
  const int64_t epoch = i / per_epoch_, at = i % per_epoch_;
  int64_t part = 0;  // the last one that does not begin after `at`
  for (int64_t end = parts_; end - part > 1;) {
    const int64_t middle = (part + end) / 2;
    (begin_of(middle) <= at ? part : end) = middle;
  }
  const int64_t begin = begin_of(part), size = begin_of(part + 1) - begin;
  const Permutation turns(static_cast<uint64_t>(size), key_(epoch, static_cast<uint32_t>(part)));
  auto n = static_cast<int64_t>(turns(static_cast<uint64_t>(at - begin)));
  size_t group = 0;
  for (;; ++group) {
    const int64_t first = part * counts_[group] / parts_,
                  share = (part + 1) * counts_[group] / parts_ - first;
    if (n < share) return item(epoch, group, first + n);
    n -= share;
  }
}

// Returns the n-th item of a group in an epoch.
int64_t LocalOrder::item(int64_t epoch, size_t group, int64_t n) const {
  const auto& [begin, end, weight] = groups_[group];
  const int64_t items = end - begin,
                block = std::max<int64_t>(1, counts_[group] / (kBlocks * parts_)),
                blocks = counts_[group] / block;
  const uint32_t keys = kKeysOfGroups + kKeysOfGroup * static_cast<uint32_t>(group);
  if (parts_ > 1 && n < blocks * block) {  // the items after the last whole block stay there
    const Permutation order(static_cast<uint64_t>(blocks), key_(epoch, keys));
    n = static_cast<int64_t>(order(static_cast<uint64_t>(n / block))) * block + n % block;
  }
  const int64_t whole = static_cast<int64_t>(std::floor(weight)) * items;
  if (n < whole) return begin + n % items;
  const int64_t drawn = counts_[group] - whole,
                offset = static_cast<int64_t>(key_(epoch, keys + 1) % static_cast<uint64_t>(items));
  return begin + ((n - whole) * items + offset) / drawn;
}

}  // namespace fovea::train
