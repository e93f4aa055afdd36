#pragma once

// What the ops of ops.h take beside tensors.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

namespace fovea {

// gelu: exact, by erf; gelu_tanh and quick_gelu (x sigmoid(1.702 x)) approximate it (Hendrycks and
// Gimpel 2016); relu_squared: max(x, 0)^2 (So et al. 2021).
enum class Activation : uint8_t {
  relu,
  gelu,
  gelu_tanh,
  silu,
  tanh,
  quick_gelu,
  relu_squared,
  sigmoid
};

// The pairs of elements of a head that are rotated: i and i + rotated / 2, or 2i and 2i + 1.
enum class Pairing : uint8_t { halves, neighbours };

// Inverted dropout: an element becomes 0 with `probability`, else it is divided by (1 -
// probability). Element i is dropped if uniform(word) < probability, where the word is number i % 4
// of philox(seed, Stream::dropout, substream, counter) with counter = step * 2^32 + i / 4. The
// index i counts the elements of the units of all passes of a step: element e of unit u of this
// pass has i = (first_unit + u) * round_up(E, 4) + e, where E is the number of elements per unit.
struct Dropout {
  float probability = 0;
  uint64_t seed = 0;
  uint32_t substream = 0;  // index of this dropout in the model
  uint64_t step = 0;       // steps done so far
  int64_t units = 1;       // equal parts of the tensor
  int64_t first_unit = 0;  // index, within the step, of this pass's first unit
};

struct Interval {
  int64_t begin = 0, end = 0;  // [begin, end)
};

// Per batch row, the positions at which its documents begin: ascending, the first is 0.
using DocumentStarts = std::vector<std::vector<int64_t>>;

// Defines which keys each query sees, without a mask matrix: a query row sees at most
// kMostIntervals intervals of keys, ascending and disjoint, which the attention kernels process.
struct Mask {
  static constexpr int kMostIntervals = 2;

  bool causal = false;  // a query at position p sees no key > p, except those below `prefix`
  // The position, among the keys, of query row 0; in decoding, the number of cached keys.
  int64_t first_query = 0;
  // A query at position p sees only the keys with |key - p| < window; 0 = no limit.
  int64_t window = 0;
  // With a window: every query sees the keys below `global`, and queries at positions below it see
  // all keys; causality still applies to both (Longformer, Beltagy et al. 2020).
  int64_t global = 0;
  // Causal only: every query sees the keys below `prefix`, whatever the window (a prefix LM).
  int64_t prefix = 0;
  // Per batch row, the keys that are not padding; queries see only these. Empty = all are valid.
  std::vector<Interval> valid;
  // A query sees only the keys of its own document. `window`, `global` and `prefix` count from the
  // beginning of the document. Null = each batch row is one document.
  std::shared_ptr<const DocumentStarts> documents = nullptr;

  // Returns the document of batch row `batch` that contains `position`, where `keys` is the number
  // of keys.
  Interval document(int64_t batch, int64_t position, int64_t keys) const {
    if (documents == nullptr) return {0, keys};
    const std::vector<int64_t>& starts = (*documents)[static_cast<size_t>(batch)];
    const auto next = std::upper_bound(starts.begin(), starts.end(), position);
    return {*(next - 1), next == starts.end() ? keys : std::min(*next, keys)};
  }

  // Writes to `out` [kMostIntervals] the intervals of keys that query row `query` of batch row
  // `batch` sees, where `keys` is the number of keys. Returns the number of intervals. Adjacent
  // intervals are merged.
  int intervals(int64_t batch, int64_t query, int64_t keys, Interval* out) const {
    const Interval own = document(batch, first_query + query, keys);
    const int64_t position = first_query + query - own.begin, length = own.end - own.begin;
    const int64_t end = causal ? std::min(length, std::max(position + 1, prefix)) : length;
    Interval seen[kMostIntervals] = {{0, end}, {0, 0}};
    if (window > 0 && position >= global) {
      seen[0].end = std::min(end, std::max(global, causal ? prefix : 0));
      seen[1] = {std::max<int64_t>(0, position + 1 - window),
                 window < end - position ? position + window : end};
      if (seen[1].begin <= seen[0].end) {
        seen[0].end = std::max(seen[0].end, seen[1].end);
        seen[1] = {0, 0};
      }
    }
    const Interval real = valid.empty() ? Interval{0, keys} : valid[static_cast<size_t>(batch)];
    int count = 0;
    for (const Interval& part : seen) {
      out[count] = {std::max(own.begin + part.begin, real.begin),
                    std::min(own.begin + part.end, real.end)};
      if (out[count].begin < out[count].end) ++count;
    }
    return count;
  }
};

}  // namespace fovea
