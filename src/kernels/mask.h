#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace fovea {

struct Interval {
  int64_t begin = 0, end = 0;  // [begin, end)
};

// Which keys a query sees; never a matrix. It maps a query row to a few key intervals, ascending
// and disjoint, and the tiled attention kernels walk those, forwards and backwards.
struct Mask {
  static constexpr int kMostIntervals = 2;

  bool causal = false;  // a query sees keys up to its own position
  // The position, among the keys, of query row 0; when decoding, the number of cached keys.
  int64_t first_query = 0;
  int64_t window = 0;  // causal only: a query sees this many keys, itself included; 0 = no limit
  int64_t global = 0;
  // Per batch row, the keys that are not padding; empty = all are valid.
  std::vector<Interval> valid;

  // Writes the intervals of query row `query` of batch row `batch` among `keys` keys, and returns
  // how many there are.
  int intervals(int64_t batch, int64_t query, int64_t keys, Interval* out) const {
    const int64_t position = first_query + query;
    Interval seen{0, keys};
    if (causal) seen.end = std::min(keys, position + 1);
    if (window > 0) seen.begin = std::max<int64_t>(0, position + 1 - window);
    if (!valid.empty()) {
      const Interval& real = valid[static_cast<size_t>(batch)];
      seen = {std::max(seen.begin, real.begin), std::min(seen.end, real.end)};
    }
    if (seen.begin >= seen.end) return 0;
    out[0] = seen;
    return 1;
  }
};

}  // namespace fovea
