// The backward of tiled attention (Dao et al. 2022; Dao 2023): the weights are computed again from
// q, k and the log of their sum, tile by tile. With w the weights, f dropout's factors and delta =
// sum over d of dy * y:
//   dv = (w f)^T dy,  dw = f (dy v^T),  ds = w (dw - delta),  dq = scale ds k,  dk = scale ds^T q.
//
// dk and dv of a key are chains over ascending rows, dq of a row is one over ascending keys. So it
// does not matter to the bits whether one walk computes all three (where there are enough heads to
// share out), or one walk per tile of keys computes dk and dv and one per block of rows dq, at the
// price of computing the weights twice.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention_backward.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention_simd-inl.h"
// clang-format on

#include <cmath>
#include <numbers>
#include <vector>

#include "kernels/cpu/cpu.h"

#ifndef FOVEA_KERNELS_CPU_ATTENTION_BACKWARD_CC_
#define FOVEA_KERNELS_CPU_ATTENTION_BACKWARD_CC_
namespace fovea::cpu {

struct AttentionGradients {
  Out dq, dk, dv;
  In dy, q, k, v;
  const float* log_sums;  // [B, H, T], to base 2; +inf for a query that sees no key: its weights
                          // come out as 0
  const float* deltas;    // [B, H, T]
};

// What one task computes: the gradients that it wants of `rows` and of `keys`, both whole blocks.
struct AttentionWalk {
  QueryRows queries;
  Interval rows, keys;
  bool wants_dq, wants_dkv;
};

}  // namespace fovea::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {
namespace {

constexpr int64_t kRows =
    64;  // rows of q and dy that meet a tile at a time; L2 holds all that they touch

// The scratch of a walk.
struct Buffers {
  int64_t padded;
  float* dq;       // [rows of the walk, padded]
  float* q;        // [kRows, padded], times scale / ln 2
  float* dy;       // [kRows, padded]
  float* weights;  // [kRows, kTile], first scores
  float* dscores;  // [kRows, kTile], first dw
  float* factors;  // [kTile], of dropout; ones without
  float* k;        // [kTile, padded], and transposed
  float* k_transposed;
  float* v_transposed;  // [padded, kTile]
  float* dk;            // [kTile, padded]
  float* dv;
};

struct Strip {
  int64_t first, count;  // rows of the block
  Columns columns;
};

HWY_INLINE void differentiate_row(const Buffers& buffers, int64_t row, Columns columns,
                                  float log_sum, float delta) {
  const Floats tag;
  float* weights = buffers.weights + row * kTile;
  float* dscores = buffers.dscores + row * kTile;
  const Vector shift = hn::Set(tag, log_sum), mean = hn::Set(tag, delta);
  for (int64_t c = columns.begin; c < columns.end; c += vector_size()) {
    const Vector weight = exp2(hn::Sub(hn::Load(tag, weights + c), shift));
    const Vector factor = hn::Load(tag, buffers.factors + c);
    const Vector dweight = hn::Mul(hn::Load(tag, dscores + c), factor);
    hn::Store(hn::Mul(weight, hn::Sub(dweight, mean)), tag, dscores + c);
    hn::Store(hn::Mul(weight, factor), tag, weights + c);
  }
}

// Adds what a strip of the block of rows that begins at `row` and a tile give each other.
void add_strip(const AttentionGradients& call, const AttentionWalk& walk, const Buffers& buffers,
               const SeenKeys* seen, int64_t row, int64_t tile, const Strip& strip) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t padded = buffers.padded, begin = strip.columns.begin,
                width = strip.columns.end - begin;
  float* q = buffers.q + strip.first * padded;
  float* dy = buffers.dy + strip.first * padded;
  float* weights = buffers.weights + strip.first * kTile + begin;
  float* dscores = buffers.dscores + strip.first * kTile + begin;
  multiply({q, padded, 1, buffers.k_transposed + begin, kTile, weights, kTile, strip.count, width,
            shape.width, false});
  multiply({dy, padded, 1, buffers.v_transposed + begin, kTile, dscores, kTile, strip.count, width,
            shape.width, false});
  if (!strip.columns.whole)
    hide_unseen(weights - begin, seen + strip.first, strip.count, tile, strip.columns);
  for (int64_t r = strip.first; r < strip.first + strip.count; ++r) {
    const int64_t index = walk.queries.index(row + r);
    if (shape.dropout.probability > 0) dropout_factors(shape, index, tile, buffers.factors);
    differentiate_row(buffers, r, strip.columns, call.log_sums[index], call.deltas[index]);
  }
  if (walk.wants_dkv) {
    multiply({weights, 1, kTile, dy, padded, buffers.dv + begin * padded, padded, width, padded,
              strip.count, true});
    multiply({dscores, 1, kTile, q, padded, buffers.dk + begin * padded, padded, width, padded,
              strip.count, true});
  }
  if (walk.wants_dq) {
    float* dq = buffers.dq + (row - walk.rows.begin + strip.first) * padded;
    multiply({dscores, kTile, 1, buffers.k + begin * padded, padded, dq, padded, strip.count,
              padded, width, true});
  }
}

// A block that the tile is wholly visible to is one strip.
void add_block(const AttentionGradients& call, const AttentionWalk& walk, const Buffers& buffers,
               int64_t row, int64_t tile) {
  const QueryRows& queries = walk.queries;
  const int64_t rows = std::min(kRows, walk.rows.end - row), width = queries.shape.width;
  SeenKeys seen[kRows];
  find_seen_keys(queries, row, rows, seen);
  const Columns columns = seen_columns(seen, rows, tile);
  if (columns.begin == columns.end) return;
  const float factor = static_cast<float>(queries.shape.scale * std::numbers::log2e);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t offset = queries.offset(row + r);
    load_row(buffers.q + r * buffers.padded, call.q, offset, width, buffers.padded, factor);
    load_row(buffers.dy + r * buffers.padded, call.dy, offset, width, buffers.padded, 1.0f);
  }
  if (columns.whole) return add_strip(call, walk, buffers, seen, row, tile, {0, rows, columns});
  for (int64_t first = 0; first < rows; first += kStrip) {
    const int64_t count = std::min(kStrip, rows - first);
    const Strip strip{first, count, seen_columns(seen + first, count, tile)};
    if (strip.columns.begin < strip.columns.end)
      add_strip(call, walk, buffers, seen, row, tile, strip);
  }
}

void load_tile_of_walk(const AttentionGradients& call, const AttentionWalk& walk,
                       const Buffers& buffers, int64_t tile) {
  load_tile(buffers.k, call.v, walk.queries, tile);  // v's own rows are not needed
  transpose_tile(buffers.k, buffers.padded, buffers.v_transposed);
  load_tile(buffers.k, call.k, walk.queries, tile);
  transpose_tile(buffers.k, buffers.padded, buffers.k_transposed);
  std::fill(buffers.dk, buffers.dk + kTile * buffers.padded, 0.0f);
  std::fill(buffers.dv, buffers.dv + kTile * buffers.padded, 0.0f);
}

void store_tile_of_walk(const AttentionGradients& call, const AttentionWalk& walk,
                        const Buffers& buffers, int64_t tile) {
  const AttentionShape& shape = walk.queries.shape;
  for (int64_t key = 0; key < std::min(kTile, shape.keys - tile); ++key) {
    const int64_t offset = walk.queries.key_offset(tile + key);
    store_row(call.dk, offset, buffers.dk + key * buffers.padded, shape.width,
              std::numbers::ln2_v<float>);
    store_row(call.dv, offset, buffers.dv + key * buffers.padded, shape.width, 1.0f);
  }
}

void take_walk(const AttentionGradients& call, const AttentionWalk& walk) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t padded = padded_width(shape),
                rows = walk.wants_dq ? walk.rows.end - walk.rows.begin : 0;
  Scratch scratch(rows * padded + 2 * kRows * padded + 2 * kRows * kTile + kTile +
                  5 * kTile * padded);
  const auto tile_sized = [&] { return scratch.take(kTile * padded); };
  const Buffers buffers{padded,
                        scratch.take(rows * padded),
                        scratch.take(kRows * padded),
                        scratch.take(kRows * padded),
                        scratch.take(kRows * kTile),
                        scratch.take(kRows * kTile),
                        scratch.take(kTile),
                        tile_sized(),
                        tile_sized(),
                        tile_sized(),
                        tile_sized(),
                        tile_sized()};
  std::fill(buffers.dq, buffers.dq + rows * padded, 0.0f);
  std::fill(buffers.factors, buffers.factors + kTile, 1.0f);
  for (int64_t tile = walk.keys.begin; tile < walk.keys.end; tile += kTile) {
    load_tile_of_walk(call, walk, buffers, tile);
    for (int64_t row = walk.rows.begin; row < walk.rows.end; row += kRows)
      add_block(call, walk, buffers, row, tile);
    if (walk.wants_dkv) store_tile_of_walk(call, walk, buffers, tile);
  }
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t offset = walk.queries.offset(walk.rows.begin + row);
    store_row(call.dq, offset, buffers.dq + row * padded, shape.width, shape.scale);
  }
}

}  // namespace

void attention_walk(const AttentionGradients& call, const AttentionWalk& walk) {
  take_walk(call, walk);
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace fovea::cpu {
HWY_EXPORT(attention_walk);
namespace {

// deltas = sum over d of dy * y, in kLanes chains; log_sums = lse to base 2.
void prepare_rows(const AttentionShape& shape, In dy, In y, In lse, float* log_sums,
                  float* deltas) {
  const int64_t rows = shape.batch * shape.queries * shape.heads, padded = padded_width(shape);
  constexpr int64_t kGrain = 4096;  // rows; they are short
  parallel_for(rows, kGrain, [&](int64_t begin, int64_t end) {
    Scratch scratch(2 * padded);
    float* dy_row = scratch.take(padded);
    float* y_row = scratch.take(padded);
    for (int64_t row = begin; row < end; ++row) {  // of [B, T, H]
      load_row(dy_row, dy, row * shape.width, shape.width, padded, 1.0f);
      load_row(y_row, y, row * shape.width, shape.width, padded, 1.0f);
      float lanes[kLanes] = {};
      for (int64_t d = 0; d < padded; d += kLanes)
        for (int64_t lane = 0; lane < kLanes; ++lane)
          lanes[lane] += dy_row[d + lane] * y_row[d + lane];
      const int64_t head = row % shape.heads, token = row / shape.heads;
      const int64_t index =
          (token / shape.queries * shape.heads + head) * shape.queries + token % shape.queries;
      deltas[index] = sum_of_lanes(lanes);
      const float log = static_cast<const float*>(lse.data)[index];
      log_sums[index] = log == kHidden ? -kHidden : log * std::numbers::log2e_v<float>;
    }
  });
}

// Slots of a cache past the last key get no gradient.
void zero_unused_keys(Out dk, const AttentionShape& shape) {
  if (dk.data == nullptr || dk.add) return;
  const size_t row = static_cast<size_t>(shape.kv_heads * shape.width) * size_of(dk.dtype);
  for (int64_t batch = 0; batch < shape.batch; ++batch) {
    char* begin = static_cast<char*>(dk.data) +
                  static_cast<size_t>(batch * shape.capacity + shape.keys) * row;
    std::fill(begin, begin + static_cast<size_t>(shape.capacity - shape.keys) * row, char{0});
  }
}

// Whether one walk per kv head, with all its gradients, is sooner done than the split walks.
bool heads_suffice(int64_t heads, bool wants_dq, bool wants_dkv) {
  constexpr double kSplitCost = 1.4;  // 7 products instead of 5
  if (!wants_dq || !wants_dkv) return false;
  const int64_t threads = thread_count();
  return static_cast<double>((heads + threads - 1) / threads) <=
         kSplitCost * static_cast<double>(heads) / static_cast<double>(threads);
}

}  // namespace

void attention_backward(Out dq, Out dk, Out dv, In dy, In q, In k, In v, In y, In lse,
                        const AttentionShape& shape) {
  const bool wants_dq = dq.data != nullptr, wants_dkv = dk.data != nullptr || dv.data != nullptr;
  const auto count = static_cast<size_t>(shape.batch * shape.heads * shape.queries);
  std::vector<float> log_sums(count), deltas(count);
  prepare_rows(shape, dy, y, lse, log_sums.data(), deltas.data());
  const AttentionGradients call{dq, dk, dv, dy, q, k, v, log_sums.data(), deltas.data()};
  const int64_t heads = shape.batch * shape.kv_heads,
                rows = shape.heads / shape.kv_heads * shape.queries;
  const auto walk = [&](int64_t head, Interval of_rows, Interval of_keys, bool with_dq,
                        bool with_dkv) {
    const QueryRows queries{shape, head / shape.kv_heads, head % shape.kv_heads, 0, shape.queries};
    HWY_DYNAMIC_DISPATCH(attention_walk)(call, {queries, of_rows, of_keys, with_dq, with_dkv});
  };
  if (heads_suffice(heads, wants_dq, wants_dkv)) {
    share_out(shape, heads, [&](int64_t head) {
      walk(head, {0, rows}, {0, shape.keys}, true, true);
    });
  } else {
    constexpr int64_t kRowsOfDq = 256;  // share one loading of a tile
    const int64_t tiles = (shape.keys + kTile - 1) / kTile,
                  blocks = (rows + kRowsOfDq - 1) / kRowsOfDq;
    if (wants_dkv) {
      share_out(shape, heads * tiles, [&](int64_t task) {
        const int64_t key = task % tiles * kTile;
        walk(task / tiles, {0, rows}, {key, std::min(key + kTile, shape.keys)}, false, true);
      });
    }
    if (wants_dq) {
      share_out(shape, heads * blocks, [&](int64_t task) {
        const int64_t row = (blocks - 1 - task % blocks) * kRowsOfDq;
        walk(task / blocks, {row, std::min(row + kRowsOfDq, rows)}, {0, shape.keys}, true, false);
      });
    }
  }
  zero_unused_keys(dk, shape);
  zero_unused_keys(dv, shape);
}

}  // namespace fovea::cpu
#endif
