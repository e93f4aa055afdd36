// Arithmetic of tiled attention, shared by forward.cc, backward.cc and weights.cc, and compiled
// once per instruction set. All scratch memory is aligned and padded to complete vectors, so loops
// have no remainder.

#if defined(FOVEA_KERNELS_CPU_ATTENTION_SIMD_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_KERNELS_CPU_ATTENTION_SIMD_INL_H_
#undef FOVEA_KERNELS_CPU_ATTENTION_SIMD_INL_H_
#else
#define FOVEA_KERNELS_CPU_ATTENTION_SIMD_INL_H_
#endif

#include <numbers>

#include "kernels/cpu/attention/exp2-inl.h"
#include "kernels/cpu/attention/tile.h"
#include "kernels/cpu/bf16_pairs-inl.h"
#include "kernels/cpu/philox-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu {
namespace HWY_NAMESPACE {

// Loads a vector of elements of a stored type as floats.
HWY_INLINE Vector load_floats(const float* from) { return hn::LoadU(Floats(), from); }
HWY_INLINE Vector load_floats(const int8_t* from) {
  const hn::Rebind<int8_t, Floats> bytes;
  const hn::RebindToSigned<Floats> words;
  return hn::ConvertTo(Floats(), hn::PromoteTo(words, hn::LoadU(bytes, from)));
}

// The numbers of a product: floats, multiplied by stored numbers of a type.
template <class Stored>
struct FloatNumbers {
  using Left = float;
  using Right = Stored;
  static HWY_INLINE Vector load(const Stored* from) { return load_floats(from); }
  static HWY_INLINE Vector set(float x) { return all(x); }
  static HWY_INLINE Vector multiply_add(Vector a, Vector b, Vector sum) {
    return hn::MulAdd(a, b, sum);
  }
};
// Words of two bf16, adjacent along the inner index.
template <class Pairs>
struct PairNumbers : Pairs {
  using Left = uint32_t;
  using Right = uint32_t;
  static HWY_INLINE WordVector load(const uint32_t* from) { return hn::LoadU(Words(), from); }
  static HWY_INLINE WordVector set(uint32_t pair) { return hn::Set(Words(), pair); }
};

// c [rows, columns] = (c if `accumulate`, else 0) + a b. Each sum is one chain of fused
// multiply-adds over the ascending inner index, for all sizes. a is read one number (or word) at a
// time, so all strides cost the same, including those of a transposed matrix. b (of any alignment)
// and c are read as vectors; `columns` is a multiple of kPanel. The columns of b lie in panels of
// kPanel, `b_panel` elements apart.
template <class Numbers>
struct TileProduct {
  const typename Numbers::Left* a;
  int64_t a_row, a_inner;
  const typename Numbers::Right* b;
  int64_t b_inner;
  float* c;
  int64_t c_row;
  int64_t rows, columns, inner;
  bool accumulate;
  int64_t b_panel = kPanel;  // the default is for plain rows
};

// Computes one block of c in registers.
template <int kRows, int kVectors, class Numbers>
HWY_INLINE void multiply_block(const TileProduct<Numbers>& product, int64_t row, int64_t column) {
  const Floats tag;
  constexpr int64_t kOfPanel = kPanel / kLanes;
  const auto* HWY_RESTRICT a = product.a + row * product.a_row;
  const auto* HWY_RESTRICT b = product.b + column / kPanel * product.b_panel;
  float* HWY_RESTRICT c = product.c + row * product.c_row + column;
  Vector sums[kRows][kVectors];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      sums[r][v] =
          product.accumulate ? hn::Load(tag, c + r * product.c_row + v * kLanes) : hn::Zero(tag);
  }
  for (int64_t i = 0; i < product.inner; ++i, a += product.a_inner, b += product.b_inner) {
    decltype(Numbers::load(b)) factors[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      factors[v] = Numbers::load(b + v / kOfPanel * product.b_panel + v % kOfPanel * kLanes);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto factor = Numbers::set(a[r * product.a_row]);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v)
        sums[r][v] = Numbers::multiply_add(factor, factors[v], sums[r][v]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v)
      hn::Store(sums[r][v], tag, c + r * product.c_row + v * kLanes);
  }
}

// Multiplies all rows by kVectors vectors of columns; a remainder of up to four rows, as in
// decoding, is one block.
template <int kRows, int kVectors, class Numbers>
HWY_INLINE void multiply_columns(const TileProduct<Numbers>& product, int64_t row, int64_t column) {
  for (; row + kRows <= product.rows; row += kRows)
    multiply_block<kRows, kVectors>(product, row, column);
  if constexpr (kRows > 1) {
    constexpr int kFewer = kRows > 4 ? kRows / 2 : kRows - 1;
    if (row < product.rows) multiply_columns<kFewer, kVectors>(product, row, column);
  }
}

// Two fused multiply-adds start per cycle and each takes four cycles, so at least eight sums must
// be in flight. AVX-512 has 32 registers (for 4 x 4 or 8 x 2 sums and the factors), as has NEON
// (for 4 x 4 sums); AVX2 has 16 (for 4 x 2 sums, or 2 x 4 with the few rows of decoding).
template <class Numbers = FloatNumbers<float>>
void multiply(const TileProduct<Numbers>& product) {
  int64_t column = 0;
  if constexpr (kLanes == kPanel) {
    for (; column + 4 * kPanel <= product.columns; column += 4 * kPanel)
      multiply_columns<4, 4>(product, 0, column);
    for (; column + 2 * kPanel <= product.columns; column += 2 * kPanel)
      multiply_columns<8, 2>(product, 0, column);
    if (column < product.columns) multiply_columns<8, 1>(product, 0, column);
  } else {
    constexpr int kVectors = kPanel / kLanes;
    if constexpr (kVectors == 2) {
      for (; product.rows < 4 && column + 2 * kPanel <= product.columns; column += 2 * kPanel)
        multiply_columns<2, 4>(product, 0, column);
    }
    for (; column < product.columns; column += kPanel)
      multiply_columns<4, kVectors>(product, 0, column);
  }
}

// Returns the factor of the products of queries and keys in scores, to base 2.
inline float score_factor(const AttentionShape& shape) {
  return static_cast<float>(shape.scale * std::numbers::log2e);
}

// Applies the soft cap and the relative position bias to scores [rows, kTile], in units of ln 2, of
// the rows from `first_row`. slopes [rows, kTile], if not null, receives the cap's derivatives.
inline void bend_scores(float* HWY_RESTRICT scores, const QueryRows& queries, int64_t first_row,
                        int64_t rows, int64_t tile, Columns columns, float* HWY_RESTRICT slopes) {
  const AttentionShape& shape = queries.shape;
  const Floats tag;
  constexpr float kLog2e = std::numbers::log2e_v<float>;
  if (shape.softcap > 0) {
    const Vector inverse = hn::Set(tag, 1 / (shape.softcap * kLog2e));
    const Vector cap = hn::Set(tag, shape.softcap * kLog2e), one = hn::Set(tag, 1.0f);
    for (int64_t r = 0; r < rows; ++r) {
      for (int64_t c = columns.begin; c < columns.end; c += kLanes) {
        float* score = scores + r * kTile + c;
        const Vector bent = tanh_of_score(hn::Mul(hn::Load(tag, score), inverse));
        hn::Store(hn::Mul(bent, cap), tag, score);
        if (slopes != nullptr)
          hn::Store(hn::NegMulAdd(bent, bent, one), tag, slopes + r * kTile + c);
      }
    }
  }
  if (shape.bias.data == nullptr) return;
  const int64_t end = std::min(columns.end, shape.keys - tile);  // later keys are masked
  const int64_t head_0 = shape.bias_row(queries.batch, 0);
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t row = first_row + r;
    const float* bias = static_cast<const float*>(shape.bias.data) +
                        (head_0 + queries.head(row)) * shape.bias_stride + tile -
                        queries.position(row) + shape.bias_origin;
    for (int64_t c = columns.begin; c < end; ++c) scores[r * kTile + c] += bias[c] * kLog2e;
  }
}

// Returns the sum of kPanel numbers in a fixed order: adds numbers that are eight lanes apart, then
// four, two and one.
HWY_INLINE float sum_of_lanes(const float* lanes) {
  const hn::Full128<float> four;
  const auto sum = [&](const float* quad)
                       HWY_ATTR { return hn::Add(hn::Load(four, quad), hn::Load(four, quad + 8)); };
  const auto quads = hn::Add(sum(lanes), sum(lanes + 4));
  const auto pairs = hn::Add(quads, hn::Shuffle1032(quads));
  return hn::GetLane(hn::Add(pairs, hn::Shuffle2301(pairs)));
}

// The sink of a head, to base 2.
struct Sink {
  float score;

  Sink(const AttentionShape& shape, int64_t head)
      : score(static_cast<const float*>(shape.sinks.data)[head] * std::numbers::log2e_v<float>) {}
  // Returns 2^(score - pivot).
  HWY_INLINE float weight(float pivot) const {
    return hn::GetLane(exp2(hn::Set(Floats(), score - pivot)));
  }
};

// Returns the sum over i of a[i] * b[i], in kPanel chains.
HWY_INLINE float dot(const float* a, const float* b, int64_t padded) {
  const Floats tag;
  HWY_ALIGN float lanes[kPanel];
  for (int64_t lane = 0; lane < kPanel; lane += kLanes) {
    Vector sum = hn::Zero(tag);
    for (int64_t i = lane; i < padded; i += kPanel)
      sum = hn::MulAdd(hn::Load(tag, a + i), hn::Load(tag, b + i), sum);
    hn::Store(sum, tag, lanes + lane);
  }
  return sum_of_lanes(lanes);
}

// Loads four numbers from each of the rows 0, 4, 8 ... of `from`, one group after the other.
template <class Tag>
HWY_INLINE hn::Vec<Tag> load_every_fourth(Tag tag, const float* from, int64_t stride) {
  if constexpr (hn::MaxLanes(Tag()) == 4) {
    return hn::LoadU(tag, from);
  } else {
    const hn::Half<Tag> half;
    constexpr int64_t kRows = hn::MaxLanes(Tag()) / 2;
    return hn::Combine(tag, load_every_fourth(half, from + kRows * stride, stride),
                       load_every_fourth(half, from, stride));
  }
}

// out [padded, stride] = the transpose of the first `keys` rows (a multiple of the vector length),
// in blocks of 4 x 4.
HWY_INLINE void transpose_rows(TileRows rows, int64_t keys, int64_t padded, float* HWY_RESTRICT out,
                               int64_t stride = kTile) {
  const Floats tag;
  for (int64_t key = 0; key < keys; key += kLanes) {
    for (int64_t d = 0; d < padded; d += 4) {
      const auto row = [&](int64_t i) HWY_ATTR {
        return load_every_fourth(tag, rows.data + (key + i) * rows.stride + d, rows.stride);
      };
      const auto r0 = row(0), r1 = row(1), r2 = row(2), r3 = row(3);
      const auto even = hn::InterleaveLower(tag, r0, r2), odd = hn::InterleaveLower(tag, r1, r3);
      const auto even2 = hn::InterleaveUpper(tag, r0, r2), odd2 = hn::InterleaveUpper(tag, r1, r3);
      float* to = out + d * stride + key;
      hn::Store(hn::InterleaveLower(tag, even, odd), tag, to);
      hn::Store(hn::InterleaveUpper(tag, even, odd), tag, to + stride);
      hn::Store(hn::InterleaveLower(tag, even2, odd2), tag, to + 2 * stride);
      hn::Store(hn::InterleaveUpper(tag, even2, odd2), tag, to + 3 * stride);
    }
  }
}

// out [padded, kTile] = the transpose of the first `columns` keys of a tile; `copy` [kPanel,
// padded] receives the last rows, padded with zeros, if the tile has fewer rows.
inline void transpose_tile(TileRows rows, int64_t columns, int64_t padded, float* copy,
                           float* out) {
  const int64_t whole = std::min(columns, rows.count / kPanel * kPanel);
  transpose_rows(rows, whole, padded, out);
  if (whole == columns) return;
  for (int64_t key = 0; key < kPanel; ++key) {
    float* to = copy + key * padded;
    if (whole + key < rows.count)
      std::copy_n(rows.data + (whole + key) * rows.stride, padded, to);
    else
      std::fill_n(to, padded, 0.0f);
  }
  transpose_rows({copy, padded, kPanel}, kPanel, padded, out + whole);
}

// factors [kTile] = the dropout factors for row `index` of [B, H, T] and the keys of a tile.
HWY_INLINE void dropout_factors(const AttentionShape& shape, int64_t index, int64_t tile,
                                float* HWY_RESTRICT factors) {
  const Dropout& dropout = shape.dropout;
  const Floats tag;
  const hn::RebindToUnsigned<Floats> words;
  const Vector probability = hn::Set(tag, dropout.probability);
  const Vector scale = hn::Set(tag, 1.0f / (1.0f - dropout.probability));
  HWY_ALIGN uint32_t drawn_words[kTile];
  const int64_t row = shape.first_dropped_row() * shape.heads * shape.queries + index;
  const uint64_t first =
      (dropout.step << 32) + static_cast<uint64_t>(row * round_up(shape.keys, 4) + tile) / 4;
  for (int64_t at = 0; at < kTile / 4; at += kCounters)
    philox_words(dropout.seed, Stream::dropout, dropout.substream,
                 first + static_cast<uint64_t>(at), drawn_words + 4 * at);
  for (int64_t key = 0; key < kTile; key += kLanes) {
    const auto bits = hn::ShiftRight<8>(hn::Load(words, drawn_words + key));
    const auto number = hn::ConvertTo(tag, hn::BitCast(hn::RebindToSigned<Floats>(), bits));
    const auto drawn = hn::Mul(number, hn::Set(tag, 0x1p-24f));
    hn::Store(hn::IfThenElseZero(hn::Ge(drawn, probability), scale), tag, factors + key);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace fovea::cpu
HWY_AFTER_NAMESPACE();

#endif
