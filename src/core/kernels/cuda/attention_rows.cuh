#pragma once

// Rows of queries, as QueryRows of cpu/attention/tile.h counts them: the keys that they see, and
// the dropout of their weights.

#include "base/philox.h"
#include "kernels/cuda/numbers.h"
#include "kernels/cuda/tile_sizes.h"
//
#include "kernels/cpu/attention/exp2-inl.h"

namespace fovea::cuda {

using cpu::one_number::exp2;
using cpu::one_number::larger;

inline constexpr float kHidden = -INFINITY;  // the score of a masked key
inline constexpr float kLog2e = 1.44269504088896340736f, kLn2 = 0.693147180559945309417f;

// The score of a head's sink, to base 2; kHidden without sinks.
DEVICE float sink_of(const AttentionCall& call, int64_t head) {
  return call.sinks.data == nullptr ? kHidden : get(call.sinks, head) * kLog2e;
}

DEVICE bool sees(const SeenKeys& seen, int64_t key) {
  return (key >= seen.begin[0] && key < seen.end[0]) || (key >= seen.begin[1] && key < seen.end[1]);
}
// Whether some keys of a tile are seen.
DEVICE bool sees_some(const SeenKeys& seen, int64_t tile) {
  bool any = false;
  UNROLLED for (int part = 0; part < 2; ++part) any =
      any || (seen.begin[part] < seen.end[part] && seen.begin[part] < tile + kTile &&
              seen.end[part] > tile);
  return any;
}

// A row of a key-value head: all queries of its first head come first, then those of the next.
struct QueryRow {
  int64_t slot = -1;  // in [B, T, H]; negative: there is no such row
  int64_t index = 0;  // in [B, H, T]
  int32_t head = 0, position = 0;

  DEVICE QueryRow(const AttentionCall& call, int64_t batch, int64_t kv_head, int64_t row) {
    const int64_t group = call.heads / call.kv_heads;
    if (row >= group * call.queries) return;
    head = static_cast<int32_t>(kv_head * group + row / call.queries);
    position = static_cast<int32_t>(row % call.queries);
    slot = (batch * call.queries + position) * call.heads + head;
    index = (batch * call.heads + head) * call.queries + position;
  }
  DEVICE SeenKeys seen(const AttentionCall& call, int64_t batch) const {
    return slot < 0 ? SeenKeys() : call.seen[batch * call.seen_stride + position];
  }
};

// The dropout factor of the row of this index and of a key.
DEVICE float dropout_factor(const AttentionCall& call, int64_t index, int64_t key) {
  const Dropout& dropout = call.dropout;
  const int64_t row = call.first_dropped_row * call.heads * call.queries + index;
  const auto number = static_cast<uint64_t>(row * ((call.keys + 3) / 4 * 4) + key);
  const PhiloxWords words = philox_words(dropout.seed, Stream::dropout, dropout.substream,
                                         (dropout.step << 32) + number / 4);
  const float drawn = static_cast<float>(words.word(number) >> 8) * 0x1p-24f;
  return drawn >= dropout.probability ? 1.0f / (1.0f - dropout.probability) : 0;
}

}  // namespace fovea::cuda
