// A strip of queries and a tile of keys in the forward pass; included once per target.

#if defined(FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_
#undef FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_
#else
#define FOVEA_KERNELS_CPU_ATTENTION_STRIP_INL_H_
#endif

#include <cmath>

#include "kernels/cpu/attention/arithmetic-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {

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
    most = larger(most, hn::Load(tag, scores + c));
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
// to the row's sums: kPanel chains, each of two adjacent columns of every 2 kPanel. With dropout,
// the weights are then multiplied by `factors`, before they are rounded.
template <class Arithmetic>
HWY_INLINE void weigh_rounded(const Block& block, int64_t row, const float* HWY_RESTRICT scores,
                              Columns columns, float factor, const float* HWY_RESTRICT factors,
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
      auto* to = weights + c / Arithmetic::kPair;
      const Vector first = weight(c), second = weight(c + kLanes);
      sum[v] = Arithmetic::round(first, second, to, sum[v]);
      if (factors == nullptr) continue;
      Arithmetic::round(hn::Mul(first, hn::Load(tag, factors + c)),
                        hn::Mul(second, hn::Load(tag, factors + c + kLanes)), to, all(0));
    }
  }
  for (int64_t v = 0; v < kVectors; ++v) hn::Store(sum[v], tag, sums + v * kLanes);
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
  const auto elements = [](int64_t count) { return elements_of<Arithmetic>(count); };
  // The columns after the last key have weight 0.
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
    const bool drops = shape.dropout.probability > 0;
    if (drops) dropout_factors(shape, block.queries.index(row + r), tile, block.factors);
    if constexpr (kRounds) {
      weigh_rounded<Arithmetic>(block, row + r, scores, columns, factor,
                                drops ? block.factors : nullptr, weights + r * kTile / kPair);
    } else {
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
