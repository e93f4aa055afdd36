// Attention of bf16 on tensor cores (FlashAttention-2, Dao 2023). As on the CPU, weights are powers
// of two that are rounded to bf16, relative to an integer power; see cpu/attention/forward.cc.
//
// A block has 64 rows of queries or 64 keys, 16 for each of its warps. A warp has the results of
// mma(): lane i those of the rows i / 4 and i / 4 + 8, and of the columns 8 p + 2 (i % 4) and the
// next one.

#include "base/log.h"
#include "kernels/cuda/attention_rows.cuh"
#include "kernels/cuda/mma.cuh"
#include "kernels/cuda/rows.cuh"

namespace fovea::cuda {
namespace {

using cpu::one_number::short_exp2;

constexpr int kParts = kTile / 8;  // results of mma() over the columns of a tile

using Scores = float[kParts][4];  // [16, kTile]

DEVICE int part_column(int part, int e) { return 8 * part + 2 * (lane() % 4) + e % 2; }
DEVICE int part_row(int e) { return 16 * warp() + lane() / 4 + e / 2 * 8; }

DEVICE uint32_t pair(float first, float second) {
  return narrow(first).bits | static_cast<uint32_t>(narrow(second).bits) << 16;
}
// The registers of columns [16 step, 16 step + 16) as a left operand.
DEVICE void pack(uint32_t (&r)[4], const Scores& x, int step) {
  UNROLLED for (int i = 0; i < 4; ++i) {
    const float(&from)[4] = x[2 * step + i / 2];
    r[i] = pair(from[i % 2 * 2], from[i % 2 * 2 + 1]);
  }
}

// The rows of a block.
struct BlockRows {
  int64_t slot[kTile], index[kTile];
  SeenKeys seen[kTile];
  float log_sum[kTile], delta[kTile];  // of the backward pass

  // A barrier() must follow.
  DEVICE void fill(const AttentionCall& call, int64_t batch, int64_t kv_head, int64_t first) {
    if (thread() >= kTile) return;
    const QueryRow row(call, batch, kv_head, first + thread());
    slot[thread()] = row.slot;
    index[thread()] = row.index;
    seen[thread()] = row.seen(call, batch);
  }
  DEVICE int64_t head(const AttentionCall& call, int row) const {
    return slot[row] < 0 ? 0 : slot[row] % call.heads;
  }
  // The first tile from `tile` of which a row sees a key; call.keys or more if there is none. All
  // threads call it.
  DEVICE int64_t next_tile(const AttentionCall& call, int64_t tile) const {
    while (tile < call.keys &&
           !any_thread(thread() < kTile && sees_some(seen[thread() % kTile], tile)))
      tile += kTile;
    return tile;
  }
};

// Tiles of kTile rows of at most kWidth numbers, zeros after the last one.
template <int kWidth>
struct Halves {
  static constexpr int kStride = kWidth + kPad;
  using Tile = bf16[kTile * kStride];

  // Begins to copy the rows whose elements begin at start(row); negative: none.
  template <class Start>
  DEVICE static void load(Tile& to, In x, int64_t width, bool wide, const Start& start) {
    constexpr int kVectors = kWidth / kVector;
    for (int e = thread(); e < kTile * kVectors; e += threads()) {
      const int row = e / kVectors, column = e % kVectors * kVector;
      const int64_t begin = start(row);
      copy_vector(to + row * kStride + column, static_cast<const bf16*>(x.data) + begin + column,
                  begin >= 0 ? width - column : 0, wide);
    }
  }
  DEVICE static void load_rows(Tile& to, In x, int64_t width, bool wide, const BlockRows& rows) {
    load(to, x, width, wide,
         [&](int row) { return rows.slot[row] < 0 ? -1 : rows.slot[row] * width; });
  }
  DEVICE static void load_keys(Tile& to, In x, int64_t width, bool wide, const AttentionCall& call,
                               int64_t batch, int64_t kv_head, int64_t tile) {
    load(to, x, width, wide, [&](int row) {
      const int64_t key = tile + row;
      return key >= call.keys ? -1
                              : ((batch * call.capacity + key) * call.kv_heads + kv_head) * width;
    });
  }

  // x = the products of this warp's 16 rows of `left` and the rows of `right`.
  DEVICE static void multiply(Scores& x, const Tile& left, const Tile& right) {
    UNROLLED for (auto& part : x) UNROLLED for (float& each : part) each = 0;
    UNROLLED for (int k = 0; k < kWidth; k += 16) {
      uint32_t rows[4];
      load_left(rows, left, kStride, 16 * warp(), k);
      UNROLLED for (int p = 0; p < kParts; p += 2) {
        uint32_t columns[4];
        load_right(columns, right, kStride, 8 * p, k);
        multiply_16(x[p], x[p + 1], rows, columns);
      }
    }
  }
  // sums [16, 8 kCount] += x, rounded, times the columns of `right` [kTile, kWidth] from `column`.
  template <int kCount>
  DEVICE static void add_weighted(float (&sums)[kCount][4], const Scores& x, const Tile& right,
                                  int column) {
    UNROLLED for (int step = 0; step < kTile / 16; ++step) {
      uint32_t rows[4];
      pack(rows, x, step);
      UNROLLED for (int p = 0; p < kCount; p += 2) {
        uint32_t columns[4];
        load_right_k_first(columns, right, kStride, column + 8 * p, 16 * step);
        multiply_16(sums[p], sums[p + 1], rows, columns);
      }
    }
  }
};

constexpr int kRowLanes = 4;  // of a row of results

// ---- The forward pass

template <int kWidth>
struct ForwardTiles {
  typename Halves<kWidth>::Tile q, k[2], v[2];
  BlockRows rows;
};

static_assert(sizeof(ForwardTiles<64>) == bytes_of_mma_attention(64, kForwardTiles));

// The state of the two rows of a lane while the keys are processed.
template <int kWidth>
struct LaneStates {
  float sums[kWidth / 8][4] = {}, total[2] = {}, pivot[2];

  DEVICE LaneStates(const AttentionCall& call, const BlockRows& rows) {
    UNROLLED for (int half = 0; half < 2; ++half) {
      const float sink = sink_of(call, rows.head(call, part_row(2 * half)));
      pivot[half] = rintf(sink);  // kHidden stays
      if (sink != kHidden && lane() % kRowLanes == 0) total[half] = exp2(sink - pivot[half]);
    }
  }

  // Turns the scores of row `half` of this lane into weights; see raise_pivot() of the CPU.
  DEVICE void weigh(Scores& x, int half, const BlockRows& rows, const AttentionCall& call,
                    int64_t tile) {
    constexpr float kSlack = 8;
    const int row = part_row(2 * half);
    const SeenKeys seen = rows.seen[row];
    float most = kHidden;
    UNROLLED for (int p = 0; p < kParts; ++p)
        UNROLLED for (int e = 2 * half; e < 2 * half + 2; ++e) {
      if (!sees(seen, tile + part_column(p, e))) x[p][e] = kHidden;
      most = larger(most, x[p][e]);
    }
    most = largest_over<kRowLanes>(most) * call.factor;
    if (most > pivot[half] + kSlack) {
      const float raised = rintf(most), rescale = exp2(pivot[half] - raised);
      pivot[half] = raised;
      total[half] *= rescale;
      UNROLLED for (auto& part : sums) part[2 * half] *= rescale, part[2 * half + 1] *= rescale;
    }
    const float shift = pivot[half] == kHidden ? 0 : pivot[half];
    UNROLLED for (int p = 0; p < kParts; ++p)
        UNROLLED for (int e = 2 * half; e < 2 * half + 2; ++e) {
      x[p][e] = short_exp2(multiply_add(x[p][e], call.factor, -shift));
      total[half] += widen(narrow(x[p][e]));
      if (call.dropout.probability > 0)
        x[p][e] *= dropout_factor(call, rows.index[row], tile + part_column(p, e));
    }
  }

  DEVICE void store(Out y, Out lse, int half, const BlockRows& rows, const AttentionCall& call) {
    const int row = part_row(2 * half);
    const float sum = sum_over<kRowLanes>(total[half]), inverse = sum == 0 ? 0 : 1 / sum;
    if (rows.slot[row] < 0) return;
    UNROLLED for (int p = 0; p < kWidth / 8; ++p)
        UNROLLED for (int e = 2 * half; e < 2 * half + 2; ++e) {
      if (part_column(p, e) < call.value_width)
        put(y, rows.slot[row] * call.value_width + part_column(p, e), sums[p][e] * inverse);
    }
    if (lse.data != nullptr && lane() % 4 == 0)
      put(lse, rows.index[row],
          sum == 0 ? kHidden : pivot[half] * kLn2 + math::parts::natural_log(sum));
  }
};

template <int kWidth>
DEVICE void attend(Out y, Out lse, In q, In k, In v, const AttentionCall& call, bool wide) {
  using H = Halves<kWidth>;
  SHARED(ForwardTiles<kWidth>, shared);
  const int64_t batch = block_y() / call.kv_heads, kv_head = block_y() % call.kv_heads;
  BlockRows& rows = shared.rows;
  rows.fill(call, batch, kv_head, static_cast<int64_t>(block_x()) * kTile);
  barrier();
  const auto load = [&](int64_t tile, int stage) {
    if (tile < call.keys) {
      H::load_keys(shared.k[stage], k, call.width, wide, call, batch, kv_head, tile);
      H::load_keys(shared.v[stage], v, call.value_width, wide, call, batch, kv_head, tile);
    }
    copies_begun();
  };
  H::load_rows(shared.q, q, call.width, wide, rows);
  int64_t tile = rows.next_tile(call, 0);
  load(tile, 0);
  LaneStates<kWidth> states(call, rows);
  for (int stage = 0; tile < call.keys; stage = 1 - stage) {
    const int64_t next = rows.next_tile(call, tile + kTile);
    load(next, 1 - stage);
    wait_copies<1>();
    barrier();
    Scores x;
    H::multiply(x, shared.q, shared.k[stage]);
    UNROLLED for (int half = 0; half < 2; ++half) states.weigh(x, half, rows, call, tile);
    H::add_weighted(states.sums, x, shared.v[stage], 0);
    barrier();  // the next copies overwrite this stage
    tile = next;
  }
  wait_copies<0>();
  UNROLLED for (int half = 0; half < 2; ++half) states.store(y, lse, half, rows, call);
}

// ---- The backward pass

template <int kWidth>
struct BackwardTiles {
  typename Halves<kWidth>::Tile q, dy, k, v;
  BlockRows rows;
};

static_assert(sizeof(BackwardTiles<128>) == bytes_of_mma_attention(128, kBackwardTiles));

// Turns scores and the products of dy and the values into the weights that are multiplied with
// values, and ds. where(p, e): the row of the block and the key of an element.
template <class Where>
DEVICE void differentiate(Scores& weights, Scores& dscores, const BlockRows& rows,
                          const AttentionCall& call, const Where& where) {
  UNROLLED for (int p = 0; p < kParts; ++p) UNROLLED for (int e = 0; e < 4; ++e) {
    const auto [row, key] = where(p, e);
    const bool seen = sees(rows.seen[row], key);
    const float weight =
        seen ? short_exp2(multiply_add(weights[p][e], call.factor, -rows.log_sum[row])) : 0;
    float dropped = 1;
    if (call.dropout.probability > 0) dropped = dropout_factor(call, rows.index[row], key);
    dscores[p][e] = weight * (dscores[p][e] * dropped - rows.delta[row]);
    weights[p][e] = weight * dropped;
  }
}

struct RowAndKey {
  int row;
  int64_t key;
};

// A barrier() must follow.
DEVICE void load_sums(BlockRows& rows, const float* deltas, In lse) {
  if (thread() >= kTile) return;
  const bool exists = rows.slot[thread()] >= 0;
  const float log = exists ? get(lse, rows.index[thread()]) : kHidden;
  rows.log_sum[thread()] = log == kHidden ? INFINITY : log * kLog2e;
  rows.delta[thread()] = exists ? deltas[rows.index[thread()]] : 0;
}

// Stores 16 rows for each warp of the columns [column, column + kTile) of x [.., width], whose rows
// begin at start(row).
template <class Start>
DEVICE void store_columns(Out to, const float (&x)[kParts][4], int64_t width, int column,
                          float factor, const Start& start) {
  if (to.data == nullptr) return;
  UNROLLED for (int p = 0; p < kParts; ++p) UNROLLED for (int e = 0; e < 4; ++e) {
    const int64_t begin = start(part_row(e)), d = column + part_column(p, e);
    if (begin >= 0 && d < width) put(to, begin + d, x[p][e] * factor);
  }
}

// dk and dv of a tile of keys, 64 columns of them.
template <int kWidth>
DEVICE void differentiate_keys(Out dk, Out dv, const AttentionInputs& in, const float* deltas,
                               const AttentionCall& call, bool wide) {
  using H = Halves<kWidth>;
  SHARED(BackwardTiles<kWidth>, shared);
  constexpr int kPieces = kWidth / kTile;
  const int64_t batch = block_y() / call.kv_heads, kv_head = block_y() % call.kv_heads;
  const int64_t tile = block_x() / kPieces * kTile;
  const int column = block_x() % kPieces * kTile;
  const int64_t count = call.heads / call.kv_heads * call.queries;
  BlockRows& rows = shared.rows;
  H::load_keys(shared.k, in.k, call.width, wide, call, batch, kv_head, tile);
  H::load_keys(shared.v, in.v, call.value_width, wide, call, batch, kv_head, tile);
  copies_begun();
  float of_keys[kParts][4] = {}, of_values[kParts][4] = {};
  for (int64_t first = 0; first < count; first += kTile) {
    barrier();  // all have used the rows before
    rows.fill(call, batch, kv_head, first);
    barrier();
    if (!any_thread(thread() < kTile && sees_some(rows.seen[thread() % kTile], tile))) continue;
    load_sums(rows, deltas, in.lse);
    H::load_rows(shared.q, in.q, call.width, wide, rows);
    H::load_rows(shared.dy, in.dy, call.value_width, wide, rows);
    copies_begun();
    wait_copies<0>();
    barrier();
    Scores weights, dscores;
    H::multiply(weights, shared.k, shared.q);
    H::multiply(dscores, shared.v, shared.dy);
    differentiate(weights, dscores, rows, call,
                  [&](int p, int e) { return RowAndKey{part_column(p, e), tile + part_row(e)}; });
    H::add_weighted(of_values, weights, shared.dy, column);
    H::add_weighted(of_keys, dscores, shared.q, column);
  }
  wait_copies<0>();
  const auto start = [&](int64_t width) {
    return [=, &call](int row) {
      const int64_t key = tile + row;  // the gradients are 0 after the last key
      return key >= call.capacity
                 ? -1
                 : ((batch * call.capacity + key) * call.kv_heads + kv_head) * width;
    };
  };
  store_columns(dk, of_keys, call.width, column, call.scale, start(call.width));
  store_columns(dv, of_values, call.value_width, column, 1, start(call.value_width));
}

// dq of a tile of rows, 64 columns of it.
template <int kWidth>
DEVICE void differentiate_queries(Out dq, const AttentionInputs& in, const float* deltas,
                                  const AttentionCall& call, bool wide) {
  using H = Halves<kWidth>;
  SHARED(BackwardTiles<kWidth>, shared);
  constexpr int kPieces = kWidth / kTile;
  const int64_t batch = block_y() / call.kv_heads, kv_head = block_y() % call.kv_heads;
  const int column = block_x() % kPieces * kTile;
  BlockRows& rows = shared.rows;
  rows.fill(call, batch, kv_head, block_x() / kPieces * kTile);
  barrier();
  load_sums(rows, deltas, in.lse);
  H::load_rows(shared.q, in.q, call.width, wide, rows);
  H::load_rows(shared.dy, in.dy, call.value_width, wide, rows);
  copies_begun();
  float of_queries[kParts][4] = {};
  for (int64_t tile = rows.next_tile(call, 0); tile < call.keys;
       tile = rows.next_tile(call, tile + kTile)) {
    barrier();  // all have used the keys before
    H::load_keys(shared.k, in.k, call.width, wide, call, batch, kv_head, tile);
    H::load_keys(shared.v, in.v, call.value_width, wide, call, batch, kv_head, tile);
    copies_begun();
    wait_copies<0>();
    barrier();
    Scores weights, dscores;
    H::multiply(weights, shared.q, shared.k);
    H::multiply(dscores, shared.dy, shared.v);
    differentiate(weights, dscores, rows, call,
                  [&](int p, int e) { return RowAndKey{part_row(e), tile + part_column(p, e)}; });
    H::add_weighted(of_queries, dscores, shared.k, column);
  }
  wait_copies<0>();
  store_columns(dq, of_queries, call.width, column, call.scale,
                [&](int row) { return rows.slot[row] < 0 ? -1 : rows.slot[row] * call.width; });
}

}  // namespace

KERNEL(attention_mma_64)(Out y, Out lse, In q, In k, In v, AttentionCall call, bool wide) {
  attend<64>(y, lse, q, k, v, call, wide);
}
KERNEL(attention_mma_128)(Out y, Out lse, In q, In k, In v, AttentionCall call, bool wide) {
  attend<128>(y, lse, q, k, v, call, wide);
}

KERNEL(attention_deltas)(float* deltas, In dy, In y, int64_t rows, AttentionCall call) {
  for (int64_t row = first_row(); row < rows; row += row_stride()) {
    const int64_t begin = row * call.value_width;
    const float delta = sum_of_row(call.value_width, [&](int64_t d, float sum) {
      return multiply_add(get(dy, begin + d), get(y, begin + d), sum);
    });
    const int64_t head = row % call.heads, query = row / call.heads % call.queries;
    const int64_t batch = row / call.heads / call.queries;
    if (lane() == 0) deltas[(batch * call.heads + head) * call.queries + query] = delta;
  }
}

KERNEL(attention_mma_backward_keys_64)
(Out dk, Out dv, AttentionInputs in, const float* deltas, AttentionCall call, bool wide) {
  differentiate_keys<64>(dk, dv, in, deltas, call, wide);
}
KERNEL(attention_mma_backward_keys_128)
(Out dk, Out dv, AttentionInputs in, const float* deltas, AttentionCall call, bool wide) {
  differentiate_keys<128>(dk, dv, in, deltas, call, wide);
}
KERNEL(attention_mma_backward_queries_64)
(Out dq, AttentionInputs in, const float* deltas, AttentionCall call, bool wide) {
  differentiate_queries<64>(dq, in, deltas, call, wide);
}
KERNEL(attention_mma_backward_queries_128)
(Out dq, AttentionInputs in, const float* deltas, AttentionCall call, bool wide) {
  differentiate_queries<128>(dq, in, deltas, call, wide);
}

}  // namespace fovea::cuda
