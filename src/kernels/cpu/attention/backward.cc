// The backward pass of tiled attention (Dao et al. 2022; Dao 2023), which recomputes the weights
// tile by tile from q, k and the log of the softmax's sum. With the weights w, the dropout factors
// f and delta = dy . y (the dot product over a head):
//   dv = (w f)^T dy,  dw = f (dy v^T),  ds = w (dw - delta),  dq = scale ds k,  dk = scale ds^T q.
//
// With a soft cap, dq and dk use ds times the cap's derivative. The gradient of a relative position
// bias is the sum of ds, without this factor, along diagonals. One task computes it for each
// key-value head and bias table, over the table's batch rows in order.
//
// dk and dv of a key are chains of additions over ascending rows, and dq of a row is a chain over
// ascending keys. So two ways give the same bits: one task per key-value head that computes all
// three (if there are enough heads for all threads), or separate tasks, one per piece of the keys
// for dk and dv and one per piece of the rows for dq, which compute the weights twice.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/backward.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention/simd-inl.h"
// clang-format on

#include <numbers>
#include <vector>

#include "kernels/cpu/cpu.h"

#ifndef FOVEA_KERNELS_CPU_ATTENTION_BACKWARD_CC_
#define FOVEA_KERNELS_CPU_ATTENTION_BACKWARD_CC_
namespace fovea::cpu {

struct AttentionGradients {
  Out dq, dk, dv;
  In dy, q, k, v, y, lse;
};

// One task: computes the requested gradients of `rows` and `keys`, both of which begin at multiples
// of kTile.
struct AttentionWalk {
  QueryRows queries;
  Interval rows, keys;
  bool wants_dq, wants_dkv;
  double* dbias = nullptr;  // [heads of the kv head, T + S - 1]; the task adds to it
};

}  // namespace fovea::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {
namespace {

// Rows of q and dy that are multiplied with a tile at a time; all data of such a product fits in
// L2.
constexpr int64_t kRows = 64;

// Scratch buffers of a task.
struct Buffers {
  int64_t padded, value_padded;
  float* q;             // [rows of the task, padded], times scale / ln 2
  float* dy;            // [rows of the task, value_padded]
  float* dq;            // [rows of the task, padded]; empty if not requested
  float* log_sums;      // [rows of the task], to base 2; +inf (weights of 0) if no key is seen
  float* deltas;        // [rows of the task]
  float* weights;       // [kRows, kTile]; first holds the scores
  float* dscores;       // [kRows, kTile]; first holds dw
  float* slopes;        // [kRows, kTile], the soft cap's derivatives
  float* factors;       // [kTile], dropout factors; all 1 if there is no dropout
  float* k;             // [kTile, the larger width]; first holds v
  float* k_transposed;  // [padded, kTile]
  float* v_transposed;  // [value_padded, kTile]
  float* dk;            // [kTile, padded]
  float* dv;            // [kTile, value_padded]
};

HWY_INLINE void differentiate_row(const Buffers& buffers, int64_t row, Columns columns,
                                  float log_sum, float delta) {
  const Floats tag;
  float* weights = buffers.weights + row * kTile;
  float* dscores = buffers.dscores + row * kTile;
  const Vector shift = hn::Set(tag, log_sum), mean = hn::Set(tag, delta);
  for (int64_t c = columns.begin; c < columns.end; c += kLanes) {
    const Vector weight = exp2(hn::Sub(hn::Load(tag, weights + c), shift));
    const Vector factor = hn::Load(tag, buffers.factors + c);
    const Vector dweight = hn::Mul(hn::Load(tag, dscores + c), factor);
    hn::Store(hn::Mul(weight, hn::Sub(dweight, mean)), tag, dscores + c);
    hn::Store(hn::Mul(weight, factor), tag, weights + c);
  }
}

// Multiplies dscores by the soft cap's derivatives.
HWY_INLINE void multiply_slopes(const Buffers& buffers, int64_t row, Columns columns) {
  const Floats tag;
  for (int64_t c = row * kTile + columns.begin; c < row * kTile + columns.end; c += kLanes)
    hn::Store(hn::Mul(hn::Load(tag, buffers.dscores + c), hn::Load(tag, buffers.slopes + c)), tag,
              buffers.dscores + c);
}

void add_to_dbias(const AttentionWalk& walk, const float* dscores, int64_t row, int64_t tile,
                  Columns columns) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t head = walk.queries.head(row) - walk.queries.kv_head * walk.queries.group();
  double* sums = walk.dbias + head * (shape.queries + shape.keys - 1) + tile -
                 walk.queries.position(row) + shape.queries - 1;
  const int64_t end = std::min(columns.end, shape.keys - tile);
  for (int64_t c = columns.begin; c < end; ++c) sums[c] += dscores[c];
}

// Adds the contributions of a tile and of `rows` rows, beginning at row `row` of the task, to the
// gradients.
void add_rows(const AttentionWalk& walk, const Buffers& buffers, int64_t row, int64_t rows,
              const Sight& sight, int64_t tile) {
  const Columns columns = seen_columns(sight, tile);
  if (columns.empty()) return;
  const AttentionShape& shape = walk.queries.shape;
  const int64_t padded = buffers.padded, value_padded = buffers.value_padded;
  const int64_t begin = columns.begin, width = columns.end - begin;
  const float* q = buffers.q + row * padded;
  const float* dy = buffers.dy + row * value_padded;
  float* weights = buffers.weights + begin;
  float* dscores = buffers.dscores + begin;
  multiply({q, padded, 1, buffers.k_transposed + begin, kTile, weights, kTile, rows, width,
            shape.width, false});
  multiply({dy, value_padded, 1, buffers.v_transposed + begin, kTile, dscores, kTile, rows, width,
            shape.values(), false});
  bend_scores(buffers.weights, walk.queries, walk.rows.begin + row, rows, tile, columns,
              buffers.slopes);
  if (!columns.whole)
    hide_unseen(buffers.weights, walk.queries, walk.rows.begin + row, rows, tile, columns);
  for (int64_t r = 0; r < rows; ++r) {
    if (shape.dropout.probability > 0)
      dropout_factors(shape, walk.queries.index(walk.rows.begin + row + r), tile, buffers.factors);
    differentiate_row(buffers, r, columns, buffers.log_sums[row + r], buffers.deltas[row + r]);
    if (walk.dbias != nullptr)
      add_to_dbias(walk, buffers.dscores + r * kTile, walk.rows.begin + row + r, tile, columns);
    if (shape.softcap > 0) multiply_slopes(buffers, r, columns);
  }
  if (walk.wants_dkv) {
    multiply({weights, 1, kTile, dy, value_padded, buffers.dv + begin * value_padded, value_padded,
              width, value_padded, rows, true});
    multiply({dscores, 1, kTile, q, padded, buffers.dk + begin * padded, padded, width, padded,
              rows, true});
  }
  if (walk.wants_dq) {
    multiply({dscores, kTile, 1, buffers.k + begin * padded, padded, buffers.dq + row * padded,
              padded, rows, padded, width, true});
  }
}

KeyRows keys_of(const AttentionGradients& call, const AttentionWalk& walk) {
  return {call.k, walk.queries.shape.width};
}

KeyRows values_of(const AttentionGradients& call, const AttentionWalk& walk) {
  return {call.v, walk.queries.shape.values()};
}

// Processes kRows rows together if they all see the same keys of the tile, otherwise strip by
// strip.
void add_tile(const AttentionGradients& call, const AttentionWalk& walk, const Buffers& buffers,
              const std::vector<Sight>& sights, int64_t tile) {
  const int64_t rows = walk.rows.end - walk.rows.begin;
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t end = std::min(row + kRows, rows);
    const Interval ahead{tile + kTile + kTile * row / rows, tile + kTile + kTile * end / rows};
    prefetch_keys(keys_of(call, walk), walk.queries, ahead);
    prefetch_keys(values_of(call, walk), walk.queries, ahead);
    Sight all;
    for (int64_t strip = row; strip < end; strip += kStrip)
      all.merge(sights[static_cast<size_t>(strip / kStrip)]);
    if (seen_columns(all, tile).whole) {
      add_rows(walk, buffers, row, end - row, all, tile);
    } else {
      for (int64_t strip = row; strip < end; strip += kStrip)
        add_rows(walk, buffers, strip, std::min(kStrip, end - strip),
                 sights[static_cast<size_t>(strip / kStrip)], tile);
    }
  }
}

// Loads a strip's rows of q and dy, and sets their deltas and log_sums.
void load_strip(const AttentionGradients& call, const AttentionWalk& walk, const Buffers& buffers,
                int64_t row, int64_t rows) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t padded = buffers.padded, value_padded = buffers.value_padded;
  const int64_t width = shape.width, value_width = shape.values();
  const float factor = static_cast<float>(shape.scale * std::numbers::log2e);
  for (int64_t r = row; r < row + rows; ++r) {
    const int64_t of_q = walk.queries.offset(walk.rows.begin + r, width);
    const int64_t of_y = walk.queries.offset(walk.rows.begin + r, value_width);
    float* dy = buffers.dy + r * value_padded;
    load_row(buffers.q + r * padded, call.q, of_q, width, padded, factor);
    load_row(dy, call.dy, of_y, value_width, value_padded, 1.0f);
    load_row(buffers.k, call.y, of_y, value_width, value_padded, 1.0f);  // k holds no tile yet
    buffers.deltas[r] = dot(dy, buffers.k, value_padded);
    const float log =
        static_cast<const float*>(call.lse.data)[walk.queries.index(walk.rows.begin + r)];
    buffers.log_sums[r] = log == kHidden ? -kHidden : log * std::numbers::log2e_v<float>;
  }
}

// Returns the keys that each strip of the task sees; loads the strips that see any of the task's
// keys.
std::vector<Sight> load_rows(const AttentionGradients& call, const AttentionWalk& walk,
                             const Buffers& buffers) {
  const int64_t rows = walk.rows.end - walk.rows.begin;
  std::vector<Sight> sights;
  for (int64_t row = 0; row < rows; row += kStrip) {
    const int64_t count = std::min(kStrip, rows - row);
    const Sight sight = sight_of(walk.queries, walk.rows.begin + row, count);
    if (sight.begin < walk.keys.end && sight.end > walk.keys.begin)
      load_strip(call, walk, buffers, row, count);
    sights.push_back(sight);
  }
  return sights;
}

void load_tile_of_walk(const AttentionGradients& call, const AttentionWalk& walk,
                       const Buffers& buffers, int64_t tile) {
  const TileRows v = whole_tile(buffers.k, values_of(call, walk), walk.queries, tile);
  transpose_rows(v, kTile, buffers.value_padded, buffers.v_transposed);
  load_tile(buffers.k, keys_of(call, walk), walk.queries, tile);
  transpose_rows({buffers.k, buffers.padded, kTile}, kTile, buffers.padded, buffers.k_transposed);
  std::fill(buffers.dk, buffers.dk + kTile * buffers.padded, 0.0f);
  std::fill(buffers.dv, buffers.dv + kTile * buffers.value_padded, 0.0f);
}

void store_tile_of_walk(const AttentionGradients& call, const AttentionWalk& walk,
                        const Buffers& buffers, int64_t tile) {
  const AttentionShape& shape = walk.queries.shape;
  for (int64_t key = 0; key < std::min(kTile, shape.keys - tile); ++key) {
    const int64_t width = shape.width, value_width = shape.values();
    store_row(call.dk, walk.queries.key_offset(tile + key, width),
              buffers.dk + key * buffers.padded, width, std::numbers::ln2_v<float>);
    store_row(call.dv, walk.queries.key_offset(tile + key, value_width),
              buffers.dv + key * buffers.value_padded, value_width, 1.0f);
  }
}

Buffers make_buffers(int64_t padded, int64_t value_padded, int64_t rows, int64_t rows_of_dq,
                     Scratch& scratch) {
  return {padded,
          value_padded,
          scratch.take(rows * padded),
          scratch.take(rows * value_padded),
          scratch.take(rows_of_dq * padded),
          scratch.take(rows),
          scratch.take(rows),
          scratch.take(kRows * kTile),
          scratch.take(kRows * kTile),
          scratch.take(kRows * kTile),
          scratch.take(kTile),
          scratch.take(kTile * std::max(padded, value_padded)),
          scratch.take(kTile * padded),
          scratch.take(kTile * value_padded),
          scratch.take(kTile * padded),
          scratch.take(kTile * value_padded)};
}

void take_walk(const AttentionGradients& call, const AttentionWalk& walk) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t padded = cpu::padded(shape.width), value_padded = cpu::padded(shape.values());
  const int64_t rows = walk.rows.end - walk.rows.begin;
  const int64_t rows_of_dq = walk.wants_dq ? rows : 0;
  Scratch scratch(
      (rows + rows_of_dq) * padded + rows * value_padded + 2 * Scratch::size_of(rows) +
      kTile * (3 * kRows + 1 + 2 * (padded + value_padded) + std::max(padded, value_padded)));
  const Buffers buffers = make_buffers(padded, value_padded, rows, rows_of_dq, scratch);
  std::fill(buffers.dq, buffers.dq + rows_of_dq * padded, 0.0f);
  std::fill(buffers.factors, buffers.factors + kTile, 1.0f);
  const std::vector<Sight> sights = load_rows(call, walk, buffers);
  Sight all;
  for (const Sight& sight : sights) all.merge(sight);
  for (int64_t tile = walk.keys.begin; tile < walk.keys.end; tile += kTile) {
    const bool seen = !seen_columns(all, tile).empty();
    if (!seen && !walk.wants_dkv) continue;
    load_tile_of_walk(call, walk, buffers, tile);
    if (seen) add_tile(call, walk, buffers, sights, tile);
    if (walk.wants_dkv) store_tile_of_walk(call, walk, buffers, tile);
  }
  for (int64_t row = 0; row < rows_of_dq; ++row) {
    const int64_t offset = walk.queries.offset(walk.rows.begin + row, shape.width);
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

// Sets the gradient of the unused rows [keys, capacity) of k or v to zero.
void zero_unused_keys(Out dk, int64_t width, const AttentionShape& shape) {
  if (dk.data == nullptr || dk.add) return;
  const size_t row = static_cast<size_t>(shape.kv_heads * width) * size_of(dk.dtype);
  for (int64_t batch = 0; batch < shape.batch; ++batch) {
    char* begin = static_cast<char*>(dk.data) +
                  static_cast<size_t>(batch * shape.capacity + shape.keys) * row;
    std::fill(begin, begin + static_cast<size_t>(shape.capacity - shape.keys) * row, char{0});
  }
}

// Returns whether one task per key-value head for all gradients takes no more time than separate
// tasks.
bool heads_suffice(int64_t heads) {
  constexpr double kSplitCost = 1.4;  // 7 products instead of 5
  const int64_t turns = round_up(heads, thread_count());
  return static_cast<double>(turns) <= kSplitCost * static_cast<double>(heads);
}

// Returns the length of the pieces, a multiple of kTile, into which each of `heads` sequences is
// split so that each thread has several.
int64_t piece_length(int64_t length, int64_t heads) {
  constexpr int64_t kPiecesPerThread = 4;  // under a causal mask, pieces take unequal time
  const int64_t pieces = (kPiecesPerThread * thread_count() + heads - 1) / heads;
  return std::max(kTile, round_up((length + pieces - 1) / pieces, kTile));
}

void walk_for_bias(const AttentionGradients& call, Out dbias, const AttentionShape& shape) {
  const int64_t group = shape.heads / shape.kv_heads, rows = group * shape.queries;
  const int64_t distances = shape.queries + shape.keys - 1;
  const int64_t rows_of_table = shape.batch / shape.bias_tables;
  share_out(work_of(shape), shape.bias_tables * shape.kv_heads, [&](int64_t task) {
    const int64_t table = task / shape.kv_heads, kv_head = task % shape.kv_heads;
    std::vector<double> sums(static_cast<size_t>(group * distances));
    for (int64_t batch = table * rows_of_table; batch < (table + 1) * rows_of_table; ++batch) {
      const QueryRows queries{shape, batch, kv_head, 0, shape.queries};
      HWY_DYNAMIC_DISPATCH(attention_walk)
      (call, {queries, {0, rows}, {0, shape.keys}, false, false, sums.data()});
    }
    std::vector<float> rounded(sums.begin(), sums.end());
    store_row(dbias, task * group * distances, rounded.data(), group * distances, 1.0f);
  });
}

}  // namespace

void attention_backward(Out dq, Out dk, Out dv, Out dbias, In dy, In q, In k, In v, In y, In lse,
                        const AttentionShape& shape) {
  const bool wants_dq = dq.data != nullptr, wants_dkv = dk.data != nullptr || dv.data != nullptr;
  const AttentionGradients call{dq, dk, dv, dy, q, k, v, y, lse};
  const int64_t heads = shape.batch * shape.kv_heads,
                rows = shape.heads / shape.kv_heads * shape.queries;
  const auto walk = [&](int64_t head, Interval of_rows, Interval of_keys, bool with_dq,
                        bool with_dkv) {
    const QueryRows queries{shape, head / shape.kv_heads, head % shape.kv_heads, 0, shape.queries};
    HWY_DYNAMIC_DISPATCH(attention_walk)(call, {queries, of_rows, of_keys, with_dq, with_dkv});
  };
  if (dbias.data != nullptr) walk_for_bias(call, dbias, shape);
  if (heads_suffice(heads)) {
    share_out(work_of(shape), heads, [&](int64_t head) {
      walk(head, {0, rows}, {0, shape.keys}, wants_dq, wants_dkv);
    });
  } else {
    const int64_t keys_each = piece_length(shape.keys, heads),
                  rows_each = piece_length(rows, heads);
    const int64_t key_pieces = wants_dkv ? (shape.keys + keys_each - 1) / keys_each : 0;
    const int64_t row_pieces = wants_dq ? (rows + rows_each - 1) / rows_each : 0;
    share_out(work_of(shape), heads * key_pieces, [&](int64_t task) {
      const int64_t key = task % key_pieces * keys_each;
      walk(task / key_pieces, {0, rows}, {key, std::min(key + keys_each, shape.keys)}, false, true);
    });
    share_out(work_of(shape), heads * row_pieces, [&](int64_t task) {
      const int64_t row = (row_pieces - 1 - task % row_pieces) * rows_each;
      walk(task / row_pieces, {row, std::min(row + rows_each, rows)}, {0, shape.keys}, true, false);
    });
  }
  zero_unused_keys(dk, shape.width, shape);
  zero_unused_keys(dv, shape.values(), shape);
}

}  // namespace fovea::cpu
#endif
