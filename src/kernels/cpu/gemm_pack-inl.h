// How gemm_f32.cc copies operands into the order in which its register tile reads them; included
// once per vector width.

#if defined(FOVEA_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_GEMM_PACK_INL_H_
#undef FOVEA_GEMM_PACK_INL_H_
#else
#define FOVEA_GEMM_PACK_INL_H_
#endif

#include <algorithm>

#include "base/dtype.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

inline float ToFloat(float x) { return x; }
inline float ToFloat(bf16 x) { return widen(x); }

template <class D>
hn::Vec<D> LoadWide(D d, const float* from) {
  return hn::LoadU(d, from);
}
template <class D>
hn::Vec<D> LoadWide(D d, const bf16* from) {
  const hn::RebindToUnsigned<D> words;
  const hn::Rebind<uint16_t, D> halves;
  const auto bits = hn::LoadU(halves, reinterpret_cast<const uint16_t*>(from));
  return hn::BitCast(d, hn::ShiftLeft<16>(hn::PromoteTo(words, bits)));
}

// One vector whose block of four lanes number i holds four consecutive elements of row 4 i.
template <class D, class T>
hn::Vec<D> LoadBlocks(D d, const T* from, size_t stride) {
  if constexpr (hn::MaxLanes(D()) == 4) {
    return LoadWide(d, from);
  } else {
    const hn::Half<D> half;
    return hn::Combine(d, LoadBlocks(half, from + 2 * hn::MaxLanes(D()) / 4 * stride, stride),
                       LoadBlocks(half, from, stride));
  }
}

// Four consecutive elements of each of kLanes rows, to four vectors `to_stride` apart: a 4 x 4
// transpose inside each block of four lanes. Loading the blocks where they belong leaves no lane to
// be moved between blocks.
template <class T>
HWY_INLINE void TransposeFour(const T* from, size_t stride, float* HWY_RESTRICT to,
                              size_t to_stride) {
  const hn::ScalableTag<float> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto row0 = LoadBlocks(d, from, stride);
  const auto row1 = LoadBlocks(d, from + stride, stride);
  const auto row2 = LoadBlocks(d, from + 2 * stride, stride);
  const auto row3 = LoadBlocks(d, from + 3 * stride, stride);
  const auto low01 = hn::BitCast(pairs, hn::InterleaveLower(d, row0, row1));
  const auto low23 = hn::BitCast(pairs, hn::InterleaveLower(d, row2, row3));
  const auto high01 = hn::BitCast(pairs, hn::InterleaveUpper(d, row0, row1));
  const auto high23 = hn::BitCast(pairs, hn::InterleaveUpper(d, row2, row3));
  hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, low01, low23)), d, to);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, low01, low23)), d, to + to_stride);
  hn::Store(hn::BitCast(d, hn::InterleaveLower(pairs, high01, high23)), d, to + 2 * to_stride);
  hn::Store(hn::BitCast(d, hn::InterleaveUpper(pairs, high01, high23)), d, to + 3 * to_stride);
}

// to[i][column] = from[column][i] for i < k, column < columns; zeros up to `width`, a multiple of
// kLanes.
template <class T>
void PackTransposed(const T* from, size_t stride, size_t k, size_t columns, float* HWY_RESTRICT to,
                    size_t width) {
  for (size_t group = 0; group < width; group += kLanes) {
    size_t done = 0;
    if (group + kLanes <= columns) {
      for (; done + 4 <= k; done += 4) {
        TransposeFour(from + group * stride + done, stride, to + done * width + group, width);
      }
    }
    for (; done < k; ++done) {
      for (size_t column = group; column < group + kLanes; ++column) {
        to[done * width + column] = column < columns ? ToFloat(from[column * stride + done]) : 0.0f;
      }
    }
  }
}

// to[i][column] = from[i][column] for i < k, column < columns; zeros up to `width`.
template <class T>
void PackRows(const T* from, size_t stride, size_t k, size_t columns, float* HWY_RESTRICT to,
              size_t width) {
  const hn::ScalableTag<float> d;
  for (size_t i = 0; i < k; ++i) {
    size_t column = 0;
    for (; column + kLanes <= columns; column += kLanes) {
      hn::StoreU(LoadWide(d, from + i * stride + column), d, to + i * width + column);
    }
    for (; column < columns; ++column) to[i * width + column] = ToFloat(from[i * stride + column]);
    for (; column < width; ++column) to[i * width + column] = 0.0f;
  }
}

// Rows of A stored [k, rows], to tiles [k][kTileRows] one behind the other. Two tiles' rows, a
// vector, are read at once, so that each cache line is read once.
template <class T>
void PackTilesOfTransposed(const T* from, size_t stride, size_t k, size_t rows,
                           float* HWY_RESTRICT to) {
  const FloatTag d;
  const hn::Half<FloatTag> half;
  static_assert(kLanes == 2 * kTileRows);
  for (size_t row = 0; row < rows; row += 2 * kTileRows, to += 2 * kTileRows * k) {
    float* second = to + kTileRows * k;
    if (row + 2 * kTileRows <= rows) {
      for (size_t i = 0; i < k; ++i) {
        const auto both = LoadWide(d, from + i * stride + row);
        hn::Store(hn::LowerHalf(half, both), half, to + i * kTileRows);
        hn::Store(hn::UpperHalf(half, both), half, second + i * kTileRows);
      }
    } else {
      const size_t rest = rows - row;
      PackRows(from + row, stride, k, std::min(rest, kTileRows), to, kTileRows);
      if (rest > kTileRows) {
        PackRows(from + row + kTileRows, stride, k, rest - kTileRows, second, kTileRows);
      }
    }
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
