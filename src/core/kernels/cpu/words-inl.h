// Words of four bytes, which products read: a float, or two bf16 that are adjacent along k; and
// copies of matrices of such words. Included once per target.

#if defined(FOVEA_KERNELS_CPU_WORDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_WORDS_INL_H_
#undef FOVEA_KERNELS_CPU_WORDS_INL_H_
#else
#define FOVEA_KERNELS_CPU_WORDS_INL_H_
#endif

#include <bit>

#include "hwy/cache_control.h"
#include "kernels/cpu/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// A kind of word: kDepth elements along k of the stored type T. along() reads words whose elements
// are adjacent in memory, across() words whose elements lie in consecutive rows; the last word may
// lack its second element. Both return a vector of words; word() returns one word.
struct FloatWords {
  using T = float;
  static constexpr int64_t kDepth = 1;
  template <class D>
  static HWY_INLINE hn::Vec<D> along(D d, const float* from) {
    return hn::LoadU(d, from);
  }
  static HWY_INLINE Vector across(const float* from, int64_t, bool) {
    return hn::LoadU(Floats(), from);
  }
  static HWY_INLINE float word(const float* from, int64_t, bool) { return *from; }
};

// bf16 widened to floats.
struct WidenedWords {
  using T = bf16;
  static constexpr int64_t kDepth = 1;
  template <class D>
  static HWY_INLINE hn::Vec<D> along(D d, const bf16* from) {
    const hn::Rebind<uint16_t, D> halves;
    const auto bits = hn::PromoteTo(hn::RebindToUnsigned<D>(), hn::LoadU(halves, &from->bits));
    return hn::BitCast(d, hn::ShiftLeft<16>(bits));
  }
  static HWY_INLINE Vector across(const bf16* from, int64_t, bool) { return along(Floats(), from); }
  static HWY_INLINE float word(const bf16* from, int64_t, bool) { return widen(*from); }
};

// Pairs of bf16: as in bf16_pairs-inl.h, with the earlier k in the upper half, or in memory order,
// with the earlier k in the lower half.
template <bool kEarlierUpper>
struct PairWords {
  using T = bf16;
  static constexpr int64_t kDepth = 2;
  static constexpr bool kEarlierIsUpper = kEarlierUpper;
  template <class D>
  static HWY_INLINE hn::Vec<D> along(D d, const bf16* from) {
    const hn::Repartition<uint16_t, D> halves;
    const auto pairs = hn::BitCast(hn::RebindToUnsigned<D>(), hn::LoadU(halves, &from->bits));
    return hn::BitCast(d, kEarlierUpper ? hn::RotateRight<16>(pairs) : pairs);
  }
  static HWY_INLINE Vector across(const bf16* from, int64_t stride, bool second) {
    const hn::Rebind<uint16_t, Floats> halves;
    const Words words;
    const auto earlier = hn::PromoteTo(words, hn::LoadU(halves, &from->bits));
    if (!second) return hn::BitCast(Floats(), kEarlierUpper ? hn::ShiftLeft<16>(earlier) : earlier);
    const auto later = hn::PromoteTo(words, hn::LoadU(halves, &from[stride].bits));
    const auto pairs = kEarlierUpper ? hn::Or(hn::ShiftLeft<16>(earlier), later)
                                     : hn::Or(hn::ShiftLeft<16>(later), earlier);
    return hn::BitCast(Floats(), pairs);
  }
  // Returns a word whose elements are `stride` apart.
  static HWY_INLINE float word(const bf16* from, int64_t stride, bool second) {
    const uint32_t earlier = from->bits, later = second ? from[stride].bits : 0;
    return std::bit_cast<float>(kEarlierUpper ? earlier << 16 | later : later << 16 | earlier);
  }
};
using ChainPairs = PairWords<true>;
using NaturalPairs = PairWords<false>;

// Loads a vector whose block i of four lanes holds four consecutive words of row 4 i.
template <class W, class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const typename W::T* from, int64_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return W::along(d, from);
  } else {
    constexpr auto kUpper = static_cast<int64_t>(2 * hn::MaxLanes(D()) / 4);
    const hn::Half<D> half;
    return hn::Combine(d, load_blocks<W>(half, from + kUpper * stride, stride),
                       load_blocks<W>(half, from, stride));
  }
}

// No hardware prefetcher predicts the start of a row, so copies of parts of rows prefetch those of
// later rows: the next ones, or, if every row contributes little, those after about 100 ns.
constexpr int64_t kRowsAhead = 4, kShortRowsAhead = 32;

// Stores four consecutive words from each of kLanes rows to four vectors `to_stride` apart: a 4 x 4
// transpose inside each block of four lanes. Each block is loaded into its final position, so no
// lane moves between blocks.
template <class W>
HWY_INLINE void transpose_four(const typename W::T* from, int64_t stride, float* HWY_RESTRICT to,
                               int64_t to_stride) {
  const Floats d;
  const hn::Repartition<double, Floats> pairs;
  const auto row0 = load_blocks<W>(d, from, stride);
  const auto row1 = load_blocks<W>(d, from + stride, stride);
  const auto row2 = load_blocks<W>(d, from + 2 * stride, stride);
  const auto row3 = load_blocks<W>(d, from + 3 * stride, stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_stride);
  hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_stride);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_stride);
}

// Sets to[i][column] to word i of from[column][0, k), for i < words and column < width (a multiple
// of kLanes), and to zero beyond k and `columns`.
template <class W>
void pack_transposed(const typename W::T* from, int64_t stride, int64_t k, int64_t columns,
                     float* HWY_RESTRICT to, int64_t words, int64_t width) {
  for (int64_t group = 0; group < width; group += kLanes) {
    int64_t done = 0;
    if (group + kLanes <= columns) {
      for (; (done + 4) * W::kDepth <= k; done += 4) {
        transpose_four<W>(from + group * stride + done * W::kDepth, stride,
                          to + done * width + group, width);
      }
    }
    for (; done < words; ++done) {
      const int64_t first = done * W::kDepth;
      for (int64_t column = group; column < group + kLanes; ++column) {
        to[done * width + column] = column < columns && first < k
                                        ? W::word(from + column * stride + first, 1, first + 1 < k)
                                        : 0.0f;
      }
    }
  }
}

// Prefetches the rows of a later word than word i.
template <class W>
HWY_INLINE void prefetch_words(const typename W::T* from, int64_t stride, int64_t i) {
  for (int64_t row = 0; row < W::kDepth; ++row)
    hwy::Prefetch(from + (i * W::kDepth + row + kShortRowsAhead) * stride);
}

// Returns word i of the columns [column, column + kLanes) of from [k, columns]; zeros outside.
template <class W>
HWY_INLINE Vector words_across(const typename W::T* from, int64_t stride, int64_t k,
                               int64_t columns, int64_t i, int64_t column) {
  const int64_t first = i * W::kDepth;
  const bool second = first + 1 < k;
  if (first >= k || column >= columns) return all(0);
  if (column + kLanes <= columns) return W::across(from + first * stride + column, stride, second);
  alignas(64) float words[HWY_LANES(float)] = {};
  for (int64_t lane = 0; column + lane < columns; ++lane)
    words[lane] = W::word(from + first * stride + column + lane, stride, second);
  return hn::Load(Floats(), words);
}

// Sets to[i][column] to word i of column `column` of from [k, columns], for i < words and column <
// width (a multiple of kLanes), and to zero beyond k and `columns`.
template <class W>
void pack_across(const typename W::T* from, int64_t stride, int64_t k, int64_t columns,
                 float* HWY_RESTRICT to, int64_t words, int64_t width) {
  for (int64_t i = 0; i < words; ++i, to += width) {
    for (int64_t column = 0; column < width; column += kLanes) {
      prefetch_words<W>(from + column, stride, i);
      hn::Store(words_across<W>(from, stride, k, columns, i, column), Floats(), to + column);
    }
  }
}

// Sets to[row][i] to word i of from[row][0, k), for i < words, and to zero beyond k.
template <class W>
void pack_along(const typename W::T* from, int64_t stride, int64_t k, int64_t rows,
                float* HWY_RESTRICT to, int64_t words, int64_t to_stride) {
  for (int64_t row = 0; row < rows; ++row, from += stride, to += to_stride) {
    int64_t i = 0;
    for (; (i + kLanes) * W::kDepth <= k; i += kLanes) {
      hwy::Prefetch(from + kRowsAhead * stride + i * W::kDepth);
      hn::StoreU(W::along(Floats(), from + i * W::kDepth), Floats(), to + i);
    }
    for (; i < words; ++i) {
      const int64_t first = i * W::kDepth;
      to[i] = first < k ? W::word(from + first, 1, first + 1 < k) : 0.0f;
    }
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
