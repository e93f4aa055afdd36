#pragma once

// What the kernels of attention share: the rows of queries and keys of a block, and their scores. A
// block has kTile rows, as QueryRows of cpu/attention/tile.h counts them, and a tile of kTile keys
// at a time, with the sums of the CPU's kernels in the same order.

#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/lanes.cuh"
#include "kernels/cuda/tile.cuh"

namespace fovea::cuda {

struct AttentionTiles {
  Tiles tiles;
  float left[kTile][kTileStride];  // the left operand of a product, its inner index first
};

// The rows own_row() + kSide i of a block: those of a thread.
struct OwnRows {
  int64_t slot[kOwn];   // in [B, T, H]; negative: no row
  int64_t index[kOwn];  // in [B, H, T]
  int32_t head[kOwn], position[kOwn];
  SeenKeys seen[kOwn];

  // The rows from `first` of a key-value head: all queries of its first head, then of the next.
  DEVICE OwnRows(const AttentionCall& call, int64_t batch, int64_t kv_head, int64_t first) {
    UNROLLED for (int i = 0; i < kOwn; ++i) {
      const QueryRow row(call, batch, kv_head, first + own_row() + kSide * i);
      slot[i] = row.slot;
      index[i] = row.index;
      head[i] = row.head;
      position[i] = row.position;
      seen[i] = row.seen(call, batch);
    }
  }
  DEVICE bool sees(int i, int64_t key) const { return fovea::cuda::sees(seen[i], key); }
  // Whether a row of the block sees a key of the tile. All threads of the block call it.
  DEVICE bool see_tile(int64_t tile) const {
    bool any = false;
    UNROLLED for (const SeenKeys& each : seen) any = any || sees_some(each, tile);
    return any_thread(any);
  }
};

// A row of queries, or of what has their shape, as an operand of products.
struct QueryOperand {
  In x;
  int64_t width;
  float factor;

  DEVICE float at(int64_t slot, int64_t d) const {
    return slot >= 0 && d < width ? get(x, slot * width + d) * factor : 0;
  }
};

// The keys, or values, of one key-value head in an array [B, capacity, G, width].
struct RowsOfHead {
  In x;
  int64_t begin, stride, count, width;

  DEVICE RowsOfHead(In rows, const AttentionCall& call, int64_t batch, int64_t kv_head,
                    int64_t columns)
      : x(rows),
        begin((batch * call.capacity * call.kv_heads + kv_head) * columns),
        stride(call.kv_heads * columns),
        count(call.keys),
        width(columns) {}
  DEVICE float at(int64_t key, int64_t d) const {
    return key < count && d < width ? get(x, begin + key * stride + d) : 0;
  }
  DEVICE float scale(int64_t) const { return 1; }
};

// Stores the elements [l, l + kDepth) of the rows, whose slots are given.
DEVICE void load_rows(Depths& to, const QueryOperand& x, const OwnRows& rows, int64_t l) {
  UNROLLED for (int i = 0; i < kOwn; ++i) to[own_column()][own_row() + kSide * i] =
      x.at(rows.slot[i], l + own_column());
}
template <class Keys>
DEVICE void load_keys(Depths& to, const Keys& keys, int64_t tile, int64_t l) {
  UNROLLED for (int i = 0; i < kOwn; ++i) {
    const int row = own_row() + kSide * i;
    to[own_column()][row] = keys.at(tile + row, l + own_column());
  }
}

// Adds the products of rows and keys over `width`.
template <class Keys>
DEVICE void multiply_rows(Sums& sums, Tiles& tiles, const QueryOperand& x, const OwnRows& rows,
                          const Keys& keys, int64_t tile, int64_t width) {
  for (int64_t l = 0; l < width; l += kDepth) {
    load_rows(tiles.a, x, rows, l);
    load_keys(tiles.b, keys, tile, l);
    barrier();
    add_depths(sums, tiles.a, tiles.b, static_cast<int>(width - l < kDepth ? width - l : kDepth));
    barrier();
  }
}

// Adds shared.left^T x, where load(l, column) is element (l, column) of x [kTile, kTile]. The
// threads have stored `left` before a barrier().
template <class Load>
DEVICE void multiply_left(Sums& sums, AttentionTiles& shared, const Load& load) {
  for (int l = 0; l < kTile; l += kDepth) {
    UNROLLED for (int j = 0; j < kOwn; ++j) {
      const int column = own_column() + kSide * j;
      shared.tiles.b[own_row()][column] = load(l + own_row(), column);
    }
    barrier();
    add_depths(sums, shared.left + l, shared.tiles.b, kDepth);
    barrier();
  }
}

// Applies the soft cap and the relative position bias to the scores of a tile, and hides the keys
// that rows do not see. slopes, if not null, receives the cap's derivatives.
DEVICE void bend_scores(Sums& scores, const OwnRows& rows, const AttentionCall& call, int64_t batch,
                        int64_t tile, Sums* slopes) {
  const float cap = call.softcap * kLog2e, inverse = 1 / cap;
  const int64_t first_head = batch * call.bias_tables / call.batch * call.heads;
  UNROLLED for (int i = 0; i < kOwn; ++i) UNROLLED for (int j = 0; j < kOwn; ++j) {
    float& score = scores.of[i][j];
    const int64_t key = tile + own_column() + kSide * j;
    if (call.softcap > 0) {
      const float bent = cpu::one_number::tanh_of_score(score * inverse);
      score = bent * cap;
      if (slopes != nullptr) slopes->of[i][j] = fmaf(-bent, bent, 1.0f);
    }
    if (!rows.sees(i, key)) {
      score = kHidden;
    } else if (call.bias.data != nullptr) {
      const int64_t at = (first_head + rows.head[i]) * call.bias_stride + key - rows.position[i] +
                         call.bias_origin;
      score += static_cast<const float*>(call.bias.data)[at] * kLog2e;
    }
  }
}

DEVICE float dropout_factor(const AttentionCall& call, const OwnRows& rows, int i, int64_t tile,
                            int j) {
  return dropout_factor(call, rows.index[i], tile + own_column() + kSide * j);
}

}  // namespace fovea::cuda
