// A strip of queries and a tile of keys in the forward pass; included once per target.

#if defined(FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_
#undef FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_
#else
#define FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_
#endif

#include <cmath>

#include "kernels/cpu/attention/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {

// How queries are multiplied with keys, and weights with values. With `kRounds`, queries and
// weights are rounded to bf16, and words of two numbers are multiplied or, with the same bits, the
// two numbers one after the other. kPair numbers share an element of the left operand. kColumns are
// the columns that are processed at once.
template <class Stored>
struct ExactFloats : FloatNumbers<Stored> {
  static constexpr bool kRounds = false;
  static constexpr int64_t kPair = 1, kColumns = kPanel;
};

template <class Pairs>
struct Bf16Words : PairNumbers<Pairs> {
  static constexpr bool kRounds = true;
  static constexpr int64_t kPair = 2, kColumns = 2 * kPanel;

  // Stores the numbers of two vectors, rounded, and returns sum + the numbers 2i + the numbers 2i +
  // 1 of these.
  static HWY_INLINE Vector round(Vector first, Vector second, uint32_t* to, Vector sum) {
    const WordVector pairs = Pairs::round(first, second), ones = hn::Set(Words(), 0x3f803f80u);
    hn::Store(pairs, Words(), to);
    return Pairs::multiply_add(pairs, ones, sum);
  }
};

struct Bf16Floats : FloatNumbers<float> {
  static constexpr bool kRounds = true;
  static constexpr int64_t kPair = 1, kColumns = 2 * kPanel;

  static HWY_INLINE Vector round(Vector first, Vector second, float* to, Vector sum) {
    const Floats tag;
    first = widen_half(narrow_half(first));
    second = widen_half(narrow_half(second));
    hn::Store(first, tag, to);
    hn::Store(second, tag, to + kLanes);
    sum = hn::Add(sum, hn::ConcatEven(tag, second, first));
    return hn::Add(sum, hn::ConcatOdd(tag, second, first));
  }
};

// The state of a block of rows while the keys are processed.
struct Block {
  QueryRows queries;
  int64_t padded, value_padded;
  int64_t wide;  // padded, rounded up to a multiple of 2 kPanel
  // The scores of the softmax in powers of two are products of queries and keys, times factor.
  float factor;
  float* q;        // [rows, wide], see query(); without rounding already times factor
  float* y;        // [rows, value_padded], the sum of weight * v, relative to 2^pivot
  float* pivots;   // [rows], weights are 2^(score - pivot); about the largest score so far
  float* sums;     // [rows, kPanel], sums of weights
  float* factors;  // [kTile], dropout factors; all 1 if there is no dropout
  float* scores;   // [kStrip, kTile]; later holds the weights that are not rounded
  float* weights;  // [kStrip, kTile], the rounded weights
  float* k;        // [padded, kTile]
  float* rows;     // [kTile, the larger width], a copy of rows of k or v if one is needed

  // Rows are wide / kPair elements apart.
  template <class Arithmetic>
  typename Arithmetic::Left* query(int64_t row) const {
    return reinterpret_cast<typename Arithmetic::Left*>(q) + row * wide / Arithmetic::kPair;
  }
};

// Raises a row's pivot to its largest score so far and rescales its sums, but only if the score
// exceeds the pivot by more than kSlack: a weight may be as large as 2^kSlack, so the branch is
// rarely taken (the idea is from FlashAttention-4). If weights are rounded, pivots are integers, so
// that the rounding does not depend on them.
template <bool kRounds>
HWY_INLINE void raise_pivot(const Block& block, int64_t row, const float* scores, Columns columns,
                            float factor) {
  constexpr float kSlack = 8;
  const Floats tag;
  Vector most = hn::Set(tag, kHidden);
  for (int64_t c = columns.begin; c < columns.end; c += kLanes)
    most = hn::Max(most, hn::Load(tag, scores + c));
  if (kRounds) most = hn::Mul(most, all(factor));
  const float old = block.pivots[row];
  if (hn::AllFalse(tag, hn::Gt(most, all(old + kSlack)))) return;
  float largest = hn::GetLane(hn::MaxOfLanes(tag, most));
  if (kRounds) largest = std::nearbyint(largest);
  block.pivots[row] = largest;
  const Vector rescale = exp2(hn::Set(tag, old - largest));
  float* sums = block.sums + row * kPanel;
  for (int64_t i = 0; i < kPanel; i += kLanes)
    hn::Store(hn::Mul(hn::Load(tag, sums + i), rescale), tag, sums + i);
  float* y = block.y + row * block.value_padded;
  for (int64_t d = 0; d < block.value_padded; d += kLanes)
    hn::Store(hn::Mul(hn::Load(tag, y + d), rescale), tag, y + d);
}

// Turns a row of scores into weights relative to 2^pivot, adds them to the row's sums, and then
// multiplies them by `factors`: those of dropout, or the scales of int8 values.
HWY_INLINE void weigh_row(const Block& block, int64_t row, float* HWY_RESTRICT scores,
                          Columns columns, const float* HWY_RESTRICT factors) {
  const Floats tag;
  const float pivot = block.pivots[row];
  // If all keys were masked so far, the weights are 0.
  const Vector shift = hn::Set(tag, pivot == kHidden ? 0.0f : pivot);
  for (int64_t lane = 0; lane < kPanel; lane += kLanes) {
    float* HWY_RESTRICT sums = block.sums + row * kPanel + lane;
    Vector sum = hn::Load(tag, sums);
    for (int64_t c = columns.begin + lane; c < columns.end; c += kPanel) {
      const Vector weight = exp2(hn::Sub(hn::Load(tag, scores + c), shift));
      sum = hn::Add(sum, weight);
      hn::Store(hn::Mul(weight, hn::LoadU(tag, factors + c)), tag, scores + c);
    }
    hn::Store(sum, tag, sums);
  }
}

// Turns a row of scores, times factor, into weights relative to 2^pivot, rounds them, and adds them
// to the row's sums: kPanel chains, each of two adjacent columns of every 2 kPanel.
template <class Arithmetic>
HWY_INLINE void weigh_rounded(const Block& block, int64_t row, const float* HWY_RESTRICT scores,
                              Columns columns, float factor,
                              typename Arithmetic::Left* HWY_RESTRICT weights) {
  const Floats tag;
  const float pivot = block.pivots[row];
  const Vector shift = hn::Set(tag, pivot == kHidden ? 0.0f : pivot);
  const auto weight = [&](int64_t c) HWY_ATTR {
    return short_exp2(hn::MulSub(hn::Load(tag, scores + c), all(factor), shift));
  };
  constexpr int64_t kVectors = kPanel / kLanes;
  float* HWY_RESTRICT sums = block.sums + row * kPanel;
  Vector sum[kVectors];
  for (int64_t v = 0; v < kVectors; ++v) sum[v] = hn::Load(tag, sums + v * kLanes);
  for (int64_t begin = columns.begin; begin < columns.end; begin += 2 * kPanel) {
#pragma GCC unroll 2
    for (int64_t v = 0; v < kVectors; ++v) {
      const int64_t c = begin + 2 * v * kLanes;
      sum[v] =
          Arithmetic::round(weight(c), weight(c + kLanes), weights + c / Arithmetic::kPair, sum[v]);
    }
  }
  for (int64_t v = 0; v < kVectors; ++v) hn::Store(sum[v], tag, sums + v * kLanes);
}

// Multiplies scores [rows, kTile] by scales [kTile], or by `factor` if scales is null.
HWY_INLINE void scale_scores(float* HWY_RESTRICT scores, int64_t rows, Columns columns,
                             const float* HWY_RESTRICT scales, float factor = 1) {
  const Floats tag;
  for (int64_t c = columns.begin; c < columns.end; c += kLanes) {
    const Vector scale = scales != nullptr ? hn::LoadU(tag, scales + c) : all(factor);
    for (int64_t r = 0; r < rows; ++r) {
      float* score = scores + r * kTile + c;
      hn::Store(hn::Mul(hn::Load(tag, score), scale), tag, score);
    }
  }
}

// A tile of keys and values in the form that the products read. Elements are numbers or words.
template <class Element>
struct Tile {
  const Element* keys;  // transposed, in panels [D, kPanel]
  int64_t key_inner, key_panel;
  const Element* values;  // [count, value_stride]; words: [ceil(count / 2), value_stride]
  int64_t value_stride, count;
  // Scales [kTile] of int8 keys and values; null for floating-point elements.
  const float* key_scales = nullptr;
  const float* value_scales = nullptr;
};

template <class Arithmetic>
void add_tile_to_strip(const Block& block, int64_t row, int64_t rows, const Sight& sight,
                       const Tile<typename Arithmetic::Right>& here, int64_t tile) {
  constexpr int64_t kPair = Arithmetic::kPair;
  constexpr bool kRounds = Arithmetic::kRounds;
  const Columns columns = seen_columns(sight, tile, Arithmetic::kColumns);
  if (columns.empty()) return;
  const AttentionShape& shape = block.queries.shape;
  const int64_t value_padded = block.value_padded;
  // The columns after the last key have weight 0; a word is always complete.
  const auto elements = [](int64_t count) { return kRounds ? round_up(count, 2) / kPair : count; };
  const int64_t values = elements(std::min(columns.end, here.count) - columns.begin);
  multiply<Arithmetic>({block.query<Arithmetic>(row), block.wide / kPair, 1,
                        here.keys + columns.begin / kPanel * here.key_panel, here.key_inner,
                        block.scores + columns.begin, kTile, rows, columns.end - columns.begin,
                        elements(shape.width), false, here.key_panel});
  if (here.key_scales != nullptr) scale_scores(block.scores, rows, columns, here.key_scales);
  const bool bends = shape.softcap > 0 || shape.bias.data != nullptr;
  if (kRounds && bends) scale_scores(block.scores, rows, columns, nullptr, block.factor);
  const float factor = kRounds && !bends ? block.factor : 1;
  bend_scores(block.scores, block.queries, row, rows, tile, columns, nullptr);
  if (!columns.whole) hide_unseen(block.scores, block.queries, row, rows, tile, columns);
  for (int64_t r = 0; r < rows; ++r)
    raise_pivot<kRounds>(block, row + r, block.scores + r * kTile, columns, factor);
  auto* weights =
      reinterpret_cast<typename Arithmetic::Left*>(kRounds ? block.weights : block.scores);
  for (int64_t r = 0; r < rows; ++r) {
    float* scores = block.scores + r * kTile;
    if constexpr (kRounds) {
      weigh_rounded<Arithmetic>(block, row + r, scores, columns, factor,
                                weights + r * kTile / kPair);
    } else {
      if (shape.dropout.probability > 0)
        dropout_factors(shape, block.queries.index(row + r), tile, block.factors);
      weigh_row(block, row + r, scores, columns,
                here.value_scales != nullptr ? here.value_scales : block.factors);
    }
  }
  const int64_t first = columns.begin / kPair;
  multiply<Arithmetic>({weights + first, kTile / kPair, 1, here.values + first * here.value_stride,
                        here.value_stride, block.y + row * value_padded, value_padded, rows,
                        value_padded, values, true});
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#endif
