#include "generate/ngram_index.h"

#include <algorithm>

namespace fovea::infer {

// Returns the positions of the sequences that end before ids[end]; those that begin before the text
// get position 0, which find() does not use.
NgramIndex::Slots NgramIndex::slots_before(const std::vector<int32_t>& ids, int64_t end) const {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;  // 2^64 / golden ratio
  Slots slots = {};
  uint64_t hash = 0;
  for (int64_t n = 1; n <= std::min(end, kLongest); ++n) {
    hash = (hash ^ static_cast<uint32_t>(ids[static_cast<size_t>(end - n)])) * kMultiplier;
    hash ^= hash >> 32;
    if (n < kShortest) continue;
    slots[static_cast<size_t>(n - kShortest)] =
        static_cast<size_t>((hash * kMultiplier) >> (64 - bits_));
  }
  return slots;
}

// Makes the tables larger than the text, and empties them if they grow.
void NgramIndex::reserve(int64_t tokens) {
  static constexpr int kLeastBits = 8;
  if (bits_ > 0 && tokens <= int64_t{1} << bits_) return;
  bits_ = std::max(bits_, kLeastBits);
  while (int64_t{1} << bits_ <= tokens) ++bits_;
  for (auto& table : tables_) table.assign(size_t{1} << bits_, 0);
  next_ = 1;
}

std::optional<NgramIndex::Match> NgramIndex::find(const std::vector<int32_t>& ids) {
  const int64_t size = std::ssize(ids);
  if (size <= kShortest) return std::nullopt;
  reserve(size);
  for (; next_ < size; ++next_) {
    const Slots slots = slots_before(ids, next_);
    for (int64_t n = kShortest; n <= std::min(next_, kLongest); ++n) {
      const auto i = static_cast<size_t>(n - kShortest);
      tables_[i][slots[i]] = static_cast<int32_t>(next_);
    }
  }
  const Slots slots = slots_before(ids, size);
  for (int64_t n = std::min(size - 1, kLongest); n >= kShortest; --n) {
    const auto i = static_cast<size_t>(n - kShortest);
    const int64_t next = tables_[i][slots[i]];
    if (next >= n && std::equal(ids.end() - n, ids.end(), ids.begin() + (next - n)))
      return Match{next, n};
  }
  return std::nullopt;
}

std::vector<int32_t> continuation(const std::vector<int32_t>& ids, int64_t next, int64_t count) {
  std::vector<int32_t> found;
  found.reserve(static_cast<size_t>(count));
  for (int64_t i = next; i < next + count; ++i)
    found.push_back(i < std::ssize(ids) ? ids[static_cast<size_t>(i)]
                                        : found[static_cast<size_t>(i - std::ssize(ids))]);
  return found;
}

}  // namespace fovea::infer
