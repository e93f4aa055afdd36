// The backward pass of tiled attention (Dao et al. 2022; Dao 2023), which recomputes the weights
// tile by tile from q, k and the log of the softmax's sum. With the weights w, the dropout factors
// f and delta = dy . y (the dot product over a head):
//   dv = (w f)^T dy,  dw = f (dy v^T),  ds = w (dw - delta),  dq = scale ds k,  dk = scale ds^T q.
//
// With a soft cap, dq and dk use ds times the cap's derivative. The gradient of a relative position
// bias is the sum of ds, without this factor, along diagonals. One task computes it for each
// key-value head and bias table, over the table's batch rows in order.
//
// If q, k, v and dy are bf16, w f and ds are rounded to bf16 for the products.
//
// dk and dv of a key are chains of additions over ascending rows, and dq of a row is a chain over
// ascending keys. So two ways give the same bits: one task per key-value head that computes all
// three (if there are enough heads for all threads), or separate tasks, one per piece of the keys
// for dk and dv and one per piece of the rows for dq, which compute the weights twice.

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/attention/backward.cc"
#include <hwy/foreach_target.h>
// clang-format off
#include "kernels/cpu/attention/arithmetic-inl.h"
// clang-format on

#include <numbers>
#include <vector>

#include "base/float_mode.h"
#include "kernels/cpu/cpu.h"

#ifndef FOVEA_KERNELS_CPU_ATTENTION_BACKWARD_CC_
#define FOVEA_KERNELS_CPU_ATTENTION_BACKWARD_CC_
namespace fovea::cpu {

struct AttentionGradients {
  Out dq, dk, dv;
  In dy, q, k, v, y, lse;

  // Whether the products have operands in bf16.
  bool halves() const { return in_halves(dy, q, k, v); }
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

// Scratch buffers of a task. Operands of products are numbers, or words of two numbers that are
// adjacent along the inner index of the product; numbers serve as both operands.
template <class Arithmetic>
struct Buffers {
  using Left = typename Arithmetic::Left;
  using Right = typename Arithmetic::Right;

  int64_t padded, value_padded;
  int64_t q_row, dy_row;  // elements in a row of q and dy
  Left* q;                // [rows of the task, q_row]; without rounding times scale / ln 2
  Left* dy;               // [rows of the task, dy_row]
  Right* q_rows;          // q as the right operand [rows of the task / kPair, padded]
  Right* dy_rows;         // dy as the right operand [rows of the task / kPair, value_padded]
  float* dq;              // [rows of the task, padded]; empty if not requested
  float* log_sums;        // [rows of the task], to base 2; +inf (weights of 0) if no key is seen
  float* deltas;          // [rows of the task]
  float* weights;         // [kRows, kTile]; first holds the scores
  float* dscores;         // [kRows, kTile]; first holds dw
  float* slopes;          // [kRows, kTile], the soft cap's derivatives
  float* factors;         // [kTile], dropout factors; all 1 if there is no dropout
  Left* weights_by_row;   // [kRows / kPair, kTile], in the order of slot_of()
  Left* dscores_by_row;   // [kRows / kPair, kTile], likewise
  Left* dscores_by_key;   // [kRows, kTile / kPair]
  Right* k;               // [kTile / kPair, padded]; numbers: first holds v
  Right* k_transposed;    // [padded / kPair, kTile]
  Right* v_transposed;    // [value_padded / kPair, kTile]
  float* dk;              // [kTile, padded], in the order of slot_of()
  float* dv;              // [kTile, value_padded], likewise
};

// Returns the slot of a key among those of its tile, whose words of two rows are made from words
// of two keys: of each two vectors of keys, the even ones come first.
template <class Arithmetic>
constexpr int64_t slot_of(int64_t key) {
  if (Arithmetic::kPair == 1) return key;
  return key / (2 * kLanes) * (2 * kLanes) + key % 2 * kLanes + key % (2 * kLanes) / 2;
}

// `factor` is that of the scores; without rounding, it is 1.
template <class Arithmetic>
HWY_INLINE void differentiate_row(const Buffers<Arithmetic>& buffers, int64_t row, Columns columns,
                                  float log_sum, float delta, float factor) {
  const Floats tag;
  float* weights = buffers.weights + row * kTile;
  float* dscores = buffers.dscores + row * kTile;
  const Vector shift = hn::Set(tag, log_sum), mean = hn::Set(tag, delta);
  for (int64_t c = columns.begin; c < columns.end; c += kLanes) {
    const Vector score = hn::Load(tag, weights + c);
    const Vector weight = Arithmetic::kRounds ? short_exp2(hn::MulSub(score, all(factor), shift))
                                              : exp2(hn::Sub(score, shift));
    const Vector dropped = hn::Load(tag, buffers.factors + c);
    const Vector dweight = hn::Mul(hn::Load(tag, dscores + c), dropped);
    hn::Store(hn::Mul(weight, hn::Sub(dweight, mean)), tag, dscores + c);
    hn::Store(hn::Mul(weight, dropped), tag, weights + c);
  }
}

// Makes operands of the weights and dscores of `rows` rows.
void round_rows(const Buffers<ExactFloats<float>>&, int64_t, Columns) {}

void round_rows(const Buffers<Bf16Floats>& buffers, int64_t rows, Columns columns) {
  for (float* numbers : {buffers.weights, buffers.dscores}) {
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = r * kTile + columns.begin; c < r * kTile + columns.end; c += kLanes) {
        const auto rounded = narrow_half(hn::Load(Floats(), numbers + c));
        hn::Store(widen_half(rounded), Floats(), numbers + c);
      }
    }
    if (rows % 2 != 0) std::fill_n(numbers + rows * kTile, kTile, 0.0f);
  }
}

// Stores words of two rows, from words of two keys of the first and of the second row.
HWY_INLINE void store_by_row(WordVector first, WordVector second, uint32_t* to) {
  const auto upper = hn::Set(Words(), 0xffff0000u);
  hn::Store(hn::Or(hn::And(first, upper), hn::ShiftRight<16>(second)), Words(), to);
  hn::Store(hn::Or(hn::ShiftLeft<16>(first), hn::AndNot(upper, second)), Words(), to + kLanes);
}

template <class Pairs>
void round_rows(const Buffers<Bf16Words<Pairs>>& buffers, int64_t rows, Columns columns) {
  const auto rounded = [&](const float* from) HWY_ATTR {
    return Pairs::round(hn::Load(Floats(), from), hn::Load(Floats(), from + kLanes));
  };
  for (int64_t r = 0; r < rows; r += 2) {
    const bool two = r + 1 < rows;
    for (int64_t c = columns.begin; c < columns.end; c += 2 * kLanes) {
      const int64_t at = r * kTile + c, by_row = r / 2 * kTile + c;
      const WordVector none = hn::Zero(Words());
      const WordVector first = rounded(buffers.dscores + at);
      const WordVector second = two ? rounded(buffers.dscores + at + kTile) : none;
      hn::Store(first, Words(), buffers.dscores_by_key + at / 2);
      hn::Store(second, Words(), buffers.dscores_by_key + (at + kTile) / 2);
      store_by_row(first, second, buffers.dscores_by_row + by_row);
      store_by_row(rounded(buffers.weights + at),
                   two ? rounded(buffers.weights + at + kTile) : none,
                   buffers.weights_by_row + by_row);
    }
  }
}

// Multiplies dscores by the soft cap's derivatives.
template <class Arithmetic>
HWY_INLINE void multiply_slopes(const Buffers<Arithmetic>& buffers, int64_t row, Columns columns) {
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

// Turns the scores and dw of `rows` rows, beginning at row `row` of the task, into weights and ds.
template <class Arithmetic>
void differentiate(const AttentionWalk& walk, const Buffers<Arithmetic>& buffers, int64_t row,
                   int64_t rows, Columns columns, int64_t tile) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t first = walk.rows.begin + row;
  float factor = Arithmetic::kRounds ? score_factor(shape) : 1;
  if (Arithmetic::kRounds && (shape.softcap > 0 || shape.bias.data != nullptr)) {
    scale_scores(buffers.weights, rows, columns, nullptr, factor);
    factor = 1;
  }
  bend_scores(buffers.weights, walk.queries, first, rows, tile, columns, buffers.slopes);
  if (!columns.whole) hide_unseen(buffers.weights, walk.queries, first, rows, tile, columns);
  for (int64_t r = 0; r < rows; ++r) {
    if (shape.dropout.probability > 0)
      dropout_factors(shape, walk.queries.index(first + r), tile, buffers.factors);
    differentiate_row(buffers, r, columns, buffers.log_sums[row + r], buffers.deltas[row + r],
                      factor);
    if (walk.dbias != nullptr)
      add_to_dbias(walk, buffers.dscores + r * kTile, first + r, tile, columns);
    if (shape.softcap > 0) multiply_slopes(buffers, r, columns);
  }
}

// Adds the contributions of a tile and of `rows` rows, beginning at row `row` of the task, to the
// gradients.
template <class Arithmetic>
void add_rows(const AttentionWalk& walk, const Buffers<Arithmetic>& buffers, int64_t row,
              int64_t rows, const Sight& sight, int64_t tile) {
  const Columns columns = seen_columns(sight, tile, Arithmetic::kColumns);
  if (columns.empty()) return;
  constexpr int64_t kPair = Arithmetic::kPair;
  const auto elements = [](int64_t count) { return elements_of<Arithmetic>(count); };
  const AttentionShape& shape = walk.queries.shape;
  const int64_t padded = buffers.padded, value_padded = buffers.value_padded;
  const int64_t begin = columns.begin, width = columns.end - begin;
  multiply<Arithmetic>({buffers.q + row * buffers.q_row, buffers.q_row, 1,
                        buffers.k_transposed + begin, kTile, buffers.weights + begin, kTile, rows,
                        width, elements(shape.width), false});
  multiply<Arithmetic>({buffers.dy + row * buffers.dy_row, buffers.dy_row, 1,
                        buffers.v_transposed + begin, kTile, buffers.dscores + begin, kTile, rows,
                        width, elements(shape.values()), false});
  differentiate(walk, buffers, row, rows, columns, tile);
  if (walk.wants_dkv || walk.wants_dq) round_rows(buffers, rows, columns);
  if (walk.wants_dkv) {
    multiply<Arithmetic>({buffers.weights_by_row + begin, 1, kTile,
                          buffers.dy_rows + row / kPair * value_padded, value_padded,
                          buffers.dv + begin * value_padded, value_padded, width, value_padded,
                          elements(rows), true});
    multiply<Arithmetic>(
        {buffers.dscores_by_row + begin, 1, kTile, buffers.q_rows + row / kPair * padded, padded,
         buffers.dk + begin * padded, padded, width, padded, elements(rows), true});
  }
  if (walk.wants_dq) {
    multiply<Arithmetic>({buffers.dscores_by_key + begin / kPair, kTile / kPair, 1,
                          buffers.k + begin / kPair * padded, padded, buffers.dq + row * padded,
                          padded, rows, padded, elements(width), true});
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
template <class Arithmetic>
void add_tile(const AttentionGradients& call, const AttentionWalk& walk,
              const Buffers<Arithmetic>& buffers, const std::vector<Sight>& sights, int64_t tile) {
  const int64_t rows = walk.rows.end - walk.rows.begin;
  for (int64_t row = 0; row < rows; row += kRows) {
    const int64_t end = std::min(row + kRows, rows);
    const Interval ahead{tile + kTile + kTile * row / rows, tile + kTile + kTile * end / rows};
    prefetch_keys(keys_of(call, walk), walk.queries, ahead);
    prefetch_keys(values_of(call, walk), walk.queries, ahead);
    Sight all;
    for (int64_t strip = row; strip < end; strip += kStrip)
      all.merge(sights[static_cast<size_t>(strip / kStrip)]);
    if (seen_columns(all, tile, Arithmetic::kColumns).whole) {
      add_rows(walk, buffers, row, end - row, all, tile);
    } else {
      for (int64_t strip = row; strip < end; strip += kStrip)
        add_rows(walk, buffers, strip, std::min(kStrip, end - strip),
                 sights[static_cast<size_t>(strip / kStrip)], tile);
    }
  }
}

// Loads `count` rows of q or dy, beginning at row `row` of the task, as operands.
template <class Arithmetic>
void load_operands(In x, const AttentionWalk& walk, int64_t width, int64_t row, int64_t count,
                   typename Arithmetic::Left* left, int64_t stride,
                   [[maybe_unused]] typename Arithmetic::Right* right,
                   [[maybe_unused]] float factor) {
  const auto offset = [&](int64_t r) { return walk.queries.offset(walk.rows.begin + r, width); };
  if constexpr (Arithmetic::kPair == 1) {
    for (int64_t r = row; r < row + count; ++r)
      load_row(left + r * stride, x, offset(r), width, stride, factor);
    if (Arithmetic::kRounds && count % 2 != 0)
      std::fill_n(left + (row + count) * stride, stride, 0.0f);
  } else {
    const auto* from = static_cast<const bf16*>(x.data);
    for (int64_t r = row; r < row + count; ++r)
      load_words(left + r * stride, from + offset(r), width);
    for (int64_t r = row; r < row + count; r += 2) {
      const int64_t pair = std::min<int64_t>(2, row + count - r);
      auto* to = reinterpret_cast<float*>(right + r / 2 * padded(width));
      pack_across<ChainPairs>(from + offset(r), offset(r + pair - 1) - offset(r), pair, width, to,
                              1, padded(width));
    }
  }
}

// Loads a strip's rows of q and dy, and sets their deltas and log_sums.
template <class Arithmetic>
void load_strip(const AttentionGradients& call, const AttentionWalk& walk,
                const Buffers<Arithmetic>& buffers, int64_t row, int64_t rows) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t value_padded = buffers.value_padded, value_width = shape.values();
  load_operands<Arithmetic>(call.q, walk, shape.width, row, rows, buffers.q, buffers.q_row,
                            buffers.q_rows, Arithmetic::kRounds ? 1 : score_factor(shape));
  load_operands<Arithmetic>(call.dy, walk, value_width, row, rows, buffers.dy, buffers.dy_row,
                            buffers.dy_rows, 1);
  float *const y = buffers.dv, *const dy = y + value_padded;  // dv holds no tile yet
  for (int64_t r = row; r < row + rows; ++r) {
    const int64_t offset = walk.queries.offset(walk.rows.begin + r, value_width);
    load_row(y, call.y, offset, value_width, value_padded, 1.0f);
    load_row(dy, call.dy, offset, value_width, value_padded, 1.0f);
    buffers.deltas[r] = dot(dy, y, value_padded);
    const float log =
        static_cast<const float*>(call.lse.data)[walk.queries.index(walk.rows.begin + r)];
    buffers.log_sums[r] = log == kHidden ? -kHidden : log * std::numbers::log2e_v<float>;
  }
}

// Returns the keys that each strip of the task sees; loads the strips that see any of the task's
// keys.
template <class Arithmetic>
std::vector<Sight> load_rows(const AttentionGradients& call, const AttentionWalk& walk,
                             const Buffers<Arithmetic>& buffers) {
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

template <class Arithmetic>
void load_tile_of_walk(const AttentionGradients& call, const AttentionWalk& walk,
                       const Buffers<Arithmetic>& buffers, int64_t tile) {
  const KeyRows keys = keys_of(call, walk), values = values_of(call, walk);
  if constexpr (Arithmetic::kPair == 1) {
    const TileRows v = whole_tile(buffers.k, values, walk.queries, tile);
    transpose_rows(v, kTile, buffers.value_padded, buffers.v_transposed);
    load_tile(buffers.k, keys, walk.queries, tile);
    transpose_rows({buffers.k, buffers.padded, kTile}, kTile, buffers.padded, buffers.k_transposed);
  } else {
    HalfRows(values, walk.queries, tile).transpose(buffers.v_transposed);
    HalfRows(keys, walk.queries, tile).transpose(buffers.k_transposed);
    HalfRows(keys, walk.queries, tile).pair(buffers.k);
  }
  std::fill(buffers.dk, buffers.dk + kTile * buffers.padded, 0.0f);
  std::fill(buffers.dv, buffers.dv + kTile * buffers.value_padded, 0.0f);
}

template <class Arithmetic>
void store_tile_of_walk(const AttentionGradients& call, const AttentionWalk& walk,
                        const Buffers<Arithmetic>& buffers, int64_t tile) {
  const AttentionShape& shape = walk.queries.shape;
  const float factor = Arithmetic::kRounds ? shape.scale : std::numbers::ln2_v<float>;
  for (int64_t key = 0; key < std::min(kTile, shape.keys - tile); ++key) {
    const int64_t width = shape.width, value_width = shape.values();
    const int64_t slot = slot_of<Arithmetic>(key);
    store_row(call.dk, walk.queries.key_offset(tile + key, width),
              buffers.dk + slot * buffers.padded, width, factor);
    store_row(call.dv, walk.queries.key_offset(tile + key, value_width),
              buffers.dv + slot * buffers.value_padded, value_width, 1.0f);
  }
}

template <class Arithmetic>
Buffers<Arithmetic> make_buffers(const AttentionShape& shape, int64_t rows, int64_t rows_of_dq,
                                 Scratch& scratch) {
  using Left = typename Arithmetic::Left;
  using Right = typename Arithmetic::Right;
  constexpr int64_t kPair = Arithmetic::kPair;
  const auto take_left = [&](int64_t count) {
    return reinterpret_cast<Left*>(scratch.take(count));
  };
  const auto take_right = [&](int64_t count) {
    return reinterpret_cast<Right*>(scratch.take(count));
  };
  const auto row_of = [](int64_t padded) {
    return kPair == 1 ? padded : round_up(padded, 2 * kPanel) / kPair;
  };
  Buffers<Arithmetic> b{};
  b.padded = padded(shape.width), b.value_padded = padded(shape.values());
  b.q_row = row_of(b.padded), b.dy_row = row_of(b.value_padded);
  b.q = take_left(rows * b.q_row), b.dy = take_left(rows * b.dy_row);
  b.dq = scratch.take(rows_of_dq * b.padded);
  b.log_sums = scratch.take(rows), b.deltas = scratch.take(rows);
  b.weights = scratch.take(kRows * kTile), b.dscores = scratch.take(kRows * kTile);
  b.slopes = scratch.take(kRows * kTile), b.factors = scratch.take(kTile);
  if constexpr (kPair == 1) {
    b.q_rows = b.q, b.dy_rows = b.dy;
    b.weights_by_row = b.weights, b.dscores_by_row = b.dscores_by_key = b.dscores;
  } else {
    b.q_rows = take_right(rows / kPair * b.padded);
    b.dy_rows = take_right(rows / kPair * b.value_padded);
    b.weights_by_row = take_left(kRows / kPair * kTile);
    b.dscores_by_row = take_left(kRows / kPair * kTile);
    b.dscores_by_key = take_left(kRows * kTile / kPair);
  }
  b.k = take_right(kTile * std::max(b.padded, b.value_padded));
  b.k_transposed = take_right(b.padded * kTile);
  b.v_transposed = take_right(b.value_padded * kTile);
  b.dk = scratch.take(kTile * b.padded), b.dv = scratch.take(kTile * b.value_padded);
  return b;
}

// Returns the size of the buffers that make_buffers() takes, at most.
int64_t floats_of_buffers(const AttentionShape& shape, int64_t rows, int64_t rows_of_dq) {
  const int64_t padded = cpu::padded(shape.width), value_padded = cpu::padded(shape.values());
  const int64_t of_rows = padded + value_padded + 2 * kPanel;
  return rows * of_rows + rows_of_dq * padded + 2 * Scratch::size_of(rows) +
         kTile * (5 * kRows + 1 + 2 * (padded + value_padded) + std::max(padded, value_padded));
}

template <class Arithmetic>
void take_walk(const AttentionGradients& call, const AttentionWalk& walk) {
  const AttentionShape& shape = walk.queries.shape;
  const int64_t rows = walk.rows.end - walk.rows.begin;
  const int64_t rows_of_dq = walk.wants_dq ? rows : 0;
  Scratch scratch(floats_of_buffers(shape, round_up(rows, 2), rows_of_dq));
  const auto buffers = make_buffers<Arithmetic>(shape, round_up(rows, 2), rows_of_dq, scratch);
  std::fill(buffers.dq, buffers.dq + rows_of_dq * buffers.padded, 0.0f);
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
    store_row(call.dq, offset, buffers.dq + row * buffers.padded, shape.width, shape.scale);
  }
}

}  // namespace

void attention_walk(const AttentionGradients& call, const AttentionWalk& walk) {
  with_arithmetic(call.halves(),
                  [&](auto arithmetic) { take_walk<decltype(arithmetic)>(call, walk); });
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
  const FloatMode mode(call.halves() ? kFlushToZero : FloatMode::current());
  const int64_t heads = shape.batch * shape.kv_heads,
                rows = shape.heads / shape.kv_heads * shape.queries;
  const auto walk = [&](int64_t head, Interval of_rows, Interval of_keys, bool with_dq,
                        bool with_dkv) {
    const QueryRows queries{shape, head / shape.kv_heads, head % shape.kv_heads, 0, shape.queries};
    HWY_DYNAMIC_DISPATCH(attention_walk)(call, {queries, of_rows, of_keys, with_dq, with_dkv});
  };
  if (dbias.data != nullptr) walk_for_bias(call, dbias, shape);
  if (heads_suffice(heads)) {
    share_out(work_of(shape), heads,
              [&](int64_t head) { walk(head, {0, rows}, {0, shape.keys}, wants_dq, wants_dkv); });
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
