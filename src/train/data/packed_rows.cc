#include "data/packed_rows.h"

#include <algorithm>

#include "base/error.h"
#include "fovea/core/random.h"

namespace fovea::train {
namespace {

constexpr uint32_t kPackedSubstream = 19;  // of Stream::shuffle; other data uses other substreams

// Returns the key of the `which`-th permutation of an epoch.
uint64_t key_of(uint64_t seed, int64_t epoch, size_t which) {
  const auto words =
      philox(seed, Stream::shuffle, kPackedSubstream, static_cast<uint64_t>(epoch) << 24 | which);
  return uint64_t{words[0]} << 32 | words[1];
}

}  // namespace

PackedRows::PackedRows(std::vector<int32_t> lengths, std::vector<Group> groups, int64_t row,
                       uint64_t seed)
    : lengths_(std::move(lengths)), groups_(std::move(groups)), row_(row), seed_(seed) {
  for (const int32_t length : lengths_)
    check(length <= row, "packed rows: a text has {} tokens; expected at most {}", length, row);
  check(!order(0).empty(), "data: an epoch contains no text; expected larger weights of the files");
}

std::vector<std::vector<int64_t>> PackedRows::packed(const std::vector<int32_t>& lengths,
                                                     const std::vector<int64_t>& texts,
                                                     int64_t row) {
  std::vector<std::vector<int64_t>> rows;
  int64_t used = row;  // of the current row
  for (const int64_t text : texts) {
    const int64_t length = lengths[static_cast<size_t>(text)];
    int64_t start = next_start(used);
    if (rows.empty() || start + length > row) {
      rows.emplace_back();
      start = 0;
    }
    rows.back().push_back(text);
    used = start + length;
  }
  return rows;
}

// Returns the texts of an epoch in random order.
std::vector<int64_t> PackedRows::order(int64_t epoch) const {
  return weighted_order(groups_, [&](size_t which) { return key_of(seed_, epoch, which); });
}

void PackedRows::pack(int64_t epoch) const {
  if (epoch_ == epoch) return;
  rows_ = packed(lengths_, order(epoch), row_);
  epoch_ = epoch;
}

int64_t PackedRows::rows(int64_t epochs) const {
  while (std::ssize(ends_) < epochs) {
    pack(std::ssize(ends_));
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + std::ssize(rows_));
  }
  return epochs == 0 ? 0 : ends_[static_cast<size_t>(epochs) - 1];
}

std::vector<int64_t> PackedRows::operator()(int64_t number) const {
  while (ends_.empty() || ends_.back() <= number) rows(std::ssize(ends_) + 1);
  const int64_t epoch = std::upper_bound(ends_.begin(), ends_.end(), number) - ends_.begin();
  pack(epoch);
  return rows_[static_cast<size_t>(number - rows(epoch))];
}

}  // namespace fovea::train
