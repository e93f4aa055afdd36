// The register tile of gemm/vectors.cc; included once per target.

#if defined(FOVEA_GEMM_MICRO_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_GEMM_MICRO_INL_H_
#undef FOVEA_GEMM_MICRO_INL_H_
#else
#define FOVEA_GEMM_MICRO_INL_H_
#endif

#include "hwy/cache_control.h"
#include "kernels/cpu/bf16_pairs-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// A fused multiply-add takes 4 cycles and two start per cycle, so at least 8 independent ones must
// be in flight; larger tiles need fewer loads. Of AVX-512's 32 registers, 8 x 3 = 24 are
// accumulators, 3 hold B and 1 a broadcast of A; 24 multiply-adds need 11 loads, well under two
// loads per cycle. 8 row addresses still fit into the general registers. NEON has 32 registers too.
// AVX2's 16 registers hold 4 x 3 = 12 accumulators, 3 for B and 1 for A.
constexpr int64_t kTileRows = kLanes == 8 ? 4 : 8;
constexpr int64_t kTileVectors = 3;
constexpr int64_t kTileColumns = kTileVectors * kLanes;

// sum + a * b for each lane's word: floats, or pairs of bf16 by the CPU's instruction or its model.
struct FloatProducts {
  static HWY_INLINE Vector multiply_add(Vector a, Vector b, Vector sum) {
    return hn::MulAdd(a, b, sum);
  }
};
template <class Pairs>
struct PairProducts {
  static HWY_INLINE Vector multiply_add(Vector a, Vector b, Vector sum) {
    return Pairs::multiply_add(hn::BitCast(Words(), a), hn::BitCast(Words(), b), sum);
  }
};

// The start of A's rows and the distance between them; or a packed tile [k][kTileRows].
struct TileA {
  const float* data;
  int64_t row_stride;
};

// Prefetches kPrefetchStep words of A: for a packed tile, the words that follow; for rows read in
// place, the same columns of the next tile, since no hardware prefetcher predicts the start of a
// row.
constexpr int64_t kPrefetchStep = 16;  // words in a cache line
template <int64_t kRows, bool kPackedA>
HWY_INLINE void prefetch_a(TileA a, int64_t i) {
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
    hwy::Prefetch(kPackedA ? a.data + (i + kPrefetchStep) * kTileRows + row * kPrefetchStep
                           : a.data + (kTileRows + row) * a.row_stride + i);
  }
}

// Calls body(row, vector) for each vector of a tile, unrolled, so that the tile can stay in
// registers.
template <int64_t kRows, int64_t kVectors, class Body>
HWY_INLINE void each_of_tile(Body&& body) {
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) {
#pragma GCC unroll 3
    for (int64_t v = 0; v < kVectors; ++v) body(row, v);
  }
}

// Where the chains of a tile are stored: rows of complete vectors, `stride` floats apart.
struct TileSums {
  float* at;
  int64_t stride;
  bool first;  // the chains start at 0; nothing is read
  // At the end, `adds` other tiles are added, each `apart` floats before the previous one. The sum
  // overwrites the last of them.
  int adds = 0;
  int64_t apart = 0;
};

// Continues the chains of one tile over k more words. bias, if any, is added after the last
// product. b is a packed panel [k][kVectors * kLanes].
template <class Products, int64_t kRows, int64_t kVectors, bool kPackedA>
HWY_NOINLINE void multiply_tile(TileA a, const float* HWY_RESTRICT b, int64_t k,
                                const TileSums& sums, const float* HWY_RESTRICT bias) {
  const Floats d;
  Vector sum[kRows][kVectors];
  const auto each = [](auto&& body) HWY_ATTR { each_of_tile<kRows, kVectors>(body); };
  float* HWY_RESTRICT tile = sums.at;
  const int64_t stride = sums.stride;
  const auto at = [&](int64_t row, int64_t v) HWY_ATTR { return tile + row * stride + v * kLanes; };
  each([&](int64_t row, int64_t v) HWY_ATTR { sum[row][v] = hn::Zero(d); });
  if (!sums.first)
    each([&](int64_t row, int64_t v) HWY_ATTR { sum[row][v] = hn::LoadU(d, at(row, v)); });
  const float* rows[kRows];
#pragma GCC unroll 8
  for (int64_t row = 0; row < kRows; ++row) rows[row] = a.data + row * a.row_stride;
  if (stride != kTileColumns)  // in c, where the rows of the next tile follow
    each([&](int64_t row, int64_t v) HWY_ATTR { hwy::Prefetch(at(kRows + row, v)); });
  for (int64_t i = 0; i < k;) {
    prefetch_a<kRows, kPackedA>(a, i);
    const int64_t end = std::min(k, i + kPrefetchStep);
    for (; i < end; ++i) {
      Vector columns[kVectors];
#pragma GCC unroll 3
      for (int64_t v = 0; v < kVectors; ++v) columns[v] = hn::Load(d, b + v * kLanes);
      b += kVectors * kLanes;
#pragma GCC unroll 8
      for (int64_t row = 0; row < kRows; ++row) {
        const Vector x = hn::Set(d, kPackedA ? a.data[i * kTileRows + row] : rows[row][i]);
#pragma GCC unroll 3
        for (int64_t v = 0; v < kVectors; ++v)
          sum[row][v] = Products::multiply_add(x, columns[v], sum[row][v]);
      }
    }
  }
  if (bias) {
    each([&](int64_t row, int64_t v)
             HWY_ATTR { sum[row][v] = hn::Add(sum[row][v], hn::LoadU(d, bias + v * kLanes)); });
  }
  for (int i = 0; i < sums.adds; ++i) {
    tile -= sums.apart;
    each([&](int64_t row, int64_t v)
             HWY_ATTR { sum[row][v] = hn::Add(hn::LoadU(d, at(row, v)), sum[row][v]); });
  }
  each([&](int64_t row, int64_t v) HWY_ATTR { hn::StoreU(sum[row][v], d, at(row, v)); });
}

using TileFunction = void (*)(TileA, const float*, int64_t, const TileSums&, const float*);

template <class Products, bool kPackedA, int64_t kRows = kTileRows>
TileFunction tile_function_of(int64_t rows, int64_t vectors) {
  if constexpr (kRows > 1) {
    if (rows < kRows) return tile_function_of<Products, kPackedA, kRows - 1>(rows, vectors);
  }
  if (vectors == 1) return multiply_tile<Products, kRows, 1, kPackedA>;
  if (vectors == 2) return multiply_tile<Products, kRows, 2, kPackedA>;
  return multiply_tile<Products, kRows, 3, kPackedA>;
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
