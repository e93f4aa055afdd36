#pragma once

// Shared by the files of tiled attention: the layout of the queries and keys of one key-value head,
// and which keys of a tile a strip of queries sees.

#include <algorithm>
#include <cstdint>
#include <limits>

#include "base/threads.h"
#include "kernels/cpu/scratch.h"
#include "kernels/kernels.h"

namespace fovea::cpu {

// Columns of a panel of keys, and partial sums of a sum across lanes, at any vector width.
inline constexpr int64_t kPanel = 16;
// Keys per tile; the first tile begins at key 0. With D = 64, a tile of keys takes 16 KB of L1.
inline constexpr int64_t kTile = kPageTokens;
// Rows of queries that share one range of columns if the mask excludes part of a tile.
inline constexpr int64_t kStrip = 16;
// The score of a masked key.
inline constexpr float kHidden = -std::numeric_limits<float>::infinity();

inline int64_t round_up(int64_t count, int64_t multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Returns the width of a head, padded to a multiple of kPanel, so that loops over vectors in
// scratch have no remainder.
inline int64_t padded(int64_t width) { return round_up(width, kPanel); }

// The queries [begin, begin + count) of the heads that read one key-value head. All rows of the
// first head come first, then those of the second, and so on.
struct QueryRows {
  const AttentionShape& shape;
  int64_t batch, kv_head, begin, count;

  int64_t group() const { return shape.heads / shape.kv_heads; }
  int64_t rows() const { return group() * count; }
  int64_t head(int64_t row) const { return kv_head * group() + row / count; }
  int64_t position(int64_t row) const { return begin + row % count; }
  int64_t offset(int64_t row, int64_t width) const {  // in q and y, whose heads have this width
    return ((batch * shape.queries + position(row)) * shape.heads + head(row)) * width;
  }
  int64_t index(int64_t row) const {  // in [B, H, T]
    return (batch * shape.heads + head(row)) * shape.queries + position(row);
  }
  int64_t key_offset(int64_t key, int64_t width) const {  // in k and v
    return ((batch * shape.capacity + key) * shape.kv_heads + kv_head) * width;
  }
};

// The keys or values [B, capacity, G, width] of one call.
struct KeyRows {
  In x;
  int64_t width;

  int64_t padded() const { return cpu::padded(width); }
};

// Returns whether all arrays are bf16; their products then have operands in bf16.
template <class... Arrays>
bool in_halves(const Arrays&... x) {
  return ((x.dtype == DType::bf16) && ...);
}

// The keys that the rows of a strip see: no row sees a key outside [begin, end), and every row sees
// all keys of [all_begin, all_end).
struct Sight {
  int64_t begin = std::numeric_limits<int64_t>::max(), end = 0;
  int64_t all_begin = 0, all_end = std::numeric_limits<int64_t>::max();
  // The longest interval inside [begin, end) that no row sees.
  int64_t gap_begin = 0, gap_end = 0;

  bool empty() const { return begin >= end; }
  void merge(const Sight& other);
};

Sight sight_of(const QueryRows& queries, int64_t first_row, int64_t rows);

// The columns [begin, end) of a tile, multiples of `unit`, outside which a strip sees no key.
// `whole`: every row sees all keys of these columns.
struct Columns {
  int64_t begin = 0, end = 0;
  bool whole = true;

  bool empty() const { return begin >= end; }
};

Columns seen_columns(const Sight& sight, int64_t tile, int64_t unit = kPanel);

// Sets scores [rows, kTile] to kHidden inside `columns` where a row does not see the key.
void hide_unseen(float* scores, const QueryRows& queries, int64_t first_row, int64_t rows,
                 int64_t tile, Columns columns);

// out[0, padded) = x[offset, offset + width) * factor, then zeros.
void load_row(float* out, In x, int64_t offset, int64_t width, int64_t padded, float factor);
// y[offset, offset + width) (+)= row * factor; does nothing if y is null.
void store_row(Out y, int64_t offset, const float* row, int64_t width, float factor);
// out [rows, padded] = the first `rows` rows of a tile of keys or values; zeros after the last key.
void load_tile(float* out, const KeyRows& x, const QueryRows& queries, int64_t tile,
               int64_t rows = kTile);

// The rows of a tile in the form that load_tile() writes, `stride` elements apart; `count` rows may
// be read.
struct TileRows {
  const float* data;
  int64_t stride, count;
};

// Returns the rows of x if they can be read in place (perhaps fewer than a tile), else rows copied
// to `copy` [kTile, padded].
TileRows rows_of_tile(float* copy, const KeyRows& x, const QueryRows& queries, int64_t tile);
// Like rows_of_tile(), but always a complete tile, padded with zeros after the last key.
TileRows whole_tile(float* copy, const KeyRows& x, const QueryRows& queries, int64_t tile);

// Prefetches keys or values during other computations; the hardware prefetcher does not follow
// strides of several vectors.
void prefetch_keys(const KeyRows& x, const QueryRows& queries, Interval keys);

// Returns the number of multiply-adds in the product of all queries and keys.
inline int64_t work_of(const AttentionShape& shape) {
  return shape.batch * shape.heads * shape.queries * shape.keys * shape.width;
}

// Calls body(task) for each task; on one thread if the total work, in multiply-adds, costs less
// than waking a second thread (about 10 us).
template <class Body>
void share_out(int64_t work, int64_t tasks, Body&& body) {
  constexpr int64_t kSmall = 1 << 19;
  if (work < kSmall) {
    for (int64_t task = 0; task < tasks; ++task) body(task);
  } else {
    parallel_tasks(tasks, body);
  }
}

}  // namespace fovea::cpu
