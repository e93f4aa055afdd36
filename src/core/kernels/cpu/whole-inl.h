// Tiles of a product with panels of int8 or int4 (kernels/layout/packed.h); included once per
// target.

#if defined(FOVEA_PACKED_WHOLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_PACKED_WHOLE_INL_H_
#undef FOVEA_PACKED_WHOLE_INL_H_
#else
#define FOVEA_PACKED_WHOLE_INL_H_
#endif

#include <bit>

#include "kernels/cpu/float-inl.h"
#if HWY_ARCH_X86
#include "kernels/cpu/byte_dots_x86-inl.h"
#else
#include "kernels/cpu/byte_dots_arm-inl.h"
#endif

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Adds the products of a vector of weights and the activations of each row, [kRows][4] at q, to
// the sums of the rows.
template <class Dot, int kRows, int kVectors>
HWY_INLINE void add_four(WholeVector (&sums)[kRows][kVectors],
                         const typename Dot::Prepared (&w)[kVectors], const int8_t* q) {
  if constexpr (kVectors == 1 && requires { Dot::add_from(sums[0][0], w[0], q); }) {
#pragma GCC unroll 16  // a copy of q in a register would be used only once
    for (int r = 0; r < kRows; ++r) sums[r][0] = Dot::add_from(sums[r][0], w[0], q + r * 4);
    return;
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    int32_t four;
    __builtin_memcpy(&four, q + r * 4, 4);
    const WholeVector factor = hn::Set(Wholes(), four);
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) sums[r][v] = Dot::add(sums[r][v], w[v], factor);
  }
}

// The registers hold integer sums of a group: a product takes 5 cycles and two start per cycle, so
// at least 10 sums must be in flight; additional sums hide the latency of the work between groups.
// The sums over groups, which are floats, are in L1. With one row, memory is the limit, and it is
// faster to read one panel after the other, in the order of their addresses. More than
// kMostTogether rows, for which AVX-512 has registers, also take one panel after the other: weights
// are then unpacked once for all of them.
struct WholeTiles {
  static constexpr int kMostTogether = kLanes == 16 ? 8 : 4;
  static constexpr int kMostRows = kLanes == 16 ? 16 : 4;
  static constexpr int panels(int rows) {
    if (rows == 1) return 1;
    if (kLanes == 16) return rows > 4 && rows <= kMostTogether ? 3 : 4;
    return rows <= 2 ? 2 : 1;
  }
  // Calls Tiles::multiply_together, which keeps the sums of row r at carried + r * stride, for all
  // panels together or for one after the other.
  template <class Tiles, int kRows, int kPanels>
  static HWY_INLINE void multiply_by(const PackedJob& job, Range rows, int64_t panel, Range k,
                                     float* carried, const Ahead& ahead) {
    constexpr int64_t kStride = kPanels * kPanelOutputs;
    if constexpr (kRows > Tiles::kMostTogether || kPanels > Tiles::panels(kRows)) {
      for (int p = 0; p < kPanels; ++p) {
        multiply_one<Tiles, kRows>(job, rows, panel + p, k, carried + p * kPanelOutputs, kStride,
                                   {{ahead.at[p]}, ahead.step});
      }
    } else {
      Tiles::template multiply_together<kRows, kPanels>(job, rows, panel, k, carried, kStride,
                                                        ahead);
    }
  }
  // One function for all numbers of panels, also for g++, which would make one for each stride.
  template <class Tiles, int kRows>
#ifndef __clang__
  [[gnu::noclone]]
#endif
  static HWY_NOINLINE void multiply_one(const PackedJob& job, Range rows, int64_t panel, Range k,
                                        float* carried, int64_t stride, const Ahead& ahead) {
    Tiles::template multiply_together<kRows, 1>(job, rows, panel, k, carried, stride, ahead);
  }
  // 3 panels x 16 x 384 bytes and 8 rows of x, or 1 panel and 16 rows, fit into half of L1, which
  // two threads may share.
  static constexpr int64_t kBlock = 384;
};

HWY_INLINE Vector widen_scales(const uint16_t* scales) {
  const hn::Rebind<hwy::float16_t, Floats> halves;
  return hn::PromoteTo(Floats(),
                       hn::LoadU(halves, reinterpret_cast<const hwy::float16_t*>(scales)));
}

HWY_INLINE void zero_sums(float* carried, int64_t stride, int rows, int vectors) {
  for (int r = 0; r < rows; ++r)
    for (int v = 0; v < vectors; ++v)
      hn::Store(all(0), Floats(), carried + r * stride + v * kLanes);
}

// The sums of a whole row of k as floats; `factor` is the scale of the row of x.
HWY_INLINE Vector scaled(WholeVector whole, Vector scale, float factor) {
  return hn::Mul(hn::Mul(scale, all(factor)), hn::ConvertTo(Floats(), whole));
}

template <WeightFormat kFormat, template <WeightFormat> class DotOf>
struct QuantizedTiles : WholeTiles {
  using Dot = DotOf<kFormat>;
  // int4 was slower with 16 rows.
  static constexpr int kMostRows =
      kFormat == WeightFormat::int4 ? kMostTogether : WholeTiles::kMostRows;
  static constexpr int64_t kPanelBytes = kPanelOutputs * bits_of(kFormat) / 8;

  template <int kRows, int kVectors>
  using WholeSums = WholeVector[kRows][kVectors];

  template <int kRows, int kVectors>
  static HWY_INLINE void add(WholeSums<kRows, kVectors>& sums, const ByteVector (&bytes)[kVectors],
                             const int8_t* q) {
    typename Dot::Prepared w[kVectors];
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) w[v] = Dot::prepared(bytes[v]);
    add_four<Dot>(sums, w, q);
  }

  // Adds the products of one group, whose weights begin at `panels` and whose activations begin at
  // q. Advances these pointers and the prefetch addresses to the next group.
  template <int kRows, int kPanels>
  static HWY_INLINE void add_group(WholeSums<kRows, kPanels * kPanelVectors>& sums,
                                   const uint8_t* (&panels)[kPanels],
                                   const uint8_t* (&ahead)[kPanels], int64_t step, const int8_t*& q,
                                   int64_t group) {
    constexpr bool kNibbles = kFormat == WeightFormat::int4;
    constexpr int kVectors = kPanels * kPanelVectors, kLine = kPanelOutputs * 4;
    const Bytes bytes;
    const hn::Repartition<uint16_t, Floats> pairs;
    constexpr int kLines = 32 / (kNibbles ? 8 : 4);  // lines per 32 numbers; a group has 32 or 64
    const int64_t upper = group / 2 * kRows;         // distance from lower to upper numbers
    for (int64_t rest = group; rest > 0; rest -= 32) {
#pragma GCC unroll 8
      for (int line = 0; line < kLines; ++line) {
        const int8_t* factors = q + line * kRows * 4;
        ByteVector w[kVectors], half[kVectors];
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const int p = v / kPanelVectors;
          w[v] = hn::Load(bytes, panels[p] + line * kLine + v % kPanelVectors * kLanes * 4);
          if (v % kPanelVectors == 0) {
            hwy::Prefetch(ahead[p]);
            ahead[p] += step;
          }
          half[v] = hn::And(w[v], hn::Set(bytes, 15));
        }
        add<kRows, kVectors>(sums, kNibbles ? half : w, factors);
        if (!kNibbles) continue;
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v) {
          const auto shifted = hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(pairs, w[v])));
          half[v] = hn::And(shifted, hn::Set(bytes, 15));
        }
        add<kRows, kVectors>(sums, half, factors + upper);
      }
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) panels[p] += kLines * kLine;
      q += kLines * kRows * 4;
    }
    if (kNibbles) q += upper;
  }

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* carried, const Ahead& ahead) {
    multiply_by<QuantizedTiles, kRows, kPanels>(job, rows, panel, k, carried, ahead);
  }
  template <int kRows, int kPanels>
  static HWY_INLINE void multiply_together(const PackedJob& job, Range rows, int64_t panel, Range k,
                                           float* carried, int64_t stride, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors;
    const int64_t group = job.weight.group, first = k.begin / group;
    const int64_t groups = (k.end + group - 1) / group - first;
    const int64_t group_bytes = group * kPanelOutputs * bits_of(kFormat) / 8;
    const uint8_t *panels[kPanels], *prefetched[kPanels];
    const uint16_t* panel_scales[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      prefetched[p] = ahead.at[p];
      panels[p] = job.panel(panel + p) + first * group_bytes;
      panel_scales[p] = job.panel_scales(panel + p) + first * kPanelOutputs;
    }
    const int64_t step = ahead.step;
    const int8_t* q = job.bytes + rows.begin * job.stride + k.begin * kRows;
    const float* scales = job.scales + rows.begin * job.groups + first * kRows;
    const int32_t* corrections = job.corrections + rows.begin * job.groups + first * kRows;
    if (k.begin == 0) zero_sums(carried, stride, kRows, kVectors);
    for (int64_t g = 0; g < groups; ++g, scales += kRows, corrections += kRows) {
      WholeSums<kRows, kVectors> whole;
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
        for (int v = 0; v < kVectors; ++v)
          whole[r][v] = hn::Set(Wholes(), Dot::start(corrections[r]));
      }
      add_group<kRows, kPanels>(whole, panels, prefetched, step, q, group);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v) {
        const Vector scale = widen_scales(panel_scales[v / kPanelVectors] + g * kPanelOutputs +
                                          v % kPanelVectors * kLanes);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          float* sum = carried + r * stride + v * kLanes;
          const Vector both = hn::Mul(scale, all(scales[r]));
          hn::Store(hn::MulAdd(both, hn::ConvertTo(Floats(), whole[r][v]), hn::Load(Floats(), sum)),
                    Floats(), sum);
        }
      }
    }
  }
};

// Tiles for int8 weights with one scale for each output, and activations with one scale for each
// row: the sums stay integers until the last block of k.
template <template <WeightFormat> class DotOf>
struct RowTiles : QuantizedTiles<WeightFormat::int8, DotOf> {
  using Tiles = QuantizedTiles<WeightFormat::int8, DotOf>;

  static constexpr int kMostRows = WholeTiles::kMostTogether;
  // The sums continue over the whole row, so one row needs several panels too.
  static constexpr int panels(int rows) { return WholeTiles::panels(std::max(rows, 2)); }

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, Range rows, int64_t panel, Range k,
                                    float* carried, const Ahead& ahead) {
    constexpr int kVectors = kPanels * kPanelVectors;
    auto* const integers = reinterpret_cast<int32_t*>(carried);
    const uint8_t *panels[kPanels], *prefetched[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      prefetched[p] = ahead.at[p];
      panels[p] = job.panel(panel + p) + k.begin * kPanelOutputs;
    }
    const int8_t* q = job.bytes + rows.begin * job.stride + k.begin * kRows;
    typename Tiles::template WholeSums<kRows, kVectors> whole;
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const int32_t start = DotOf<WeightFormat::int8>::start(job.corrections[rows.begin + r]);
#pragma GCC unroll 8
      for (int v = 0; v < kVectors; ++v)
        whole[r][v] = k.begin == 0 ? hn::Set(Wholes(), start)
                                   : hn::Load(Wholes(), integers + (r * kVectors + v) * kLanes);
    }
    Tiles::template add_group<kRows, kPanels>(whole, panels, prefetched, ahead.step, q, k.size());
    if (k.end < job.depth) {
#pragma GCC unroll 32
      for (int i = 0; i < kRows * kVectors; ++i)
        hn::Store(whole[i / kVectors][i % kVectors], Wholes(), integers + i * kLanes);
      return;
    }
#pragma GCC unroll 8
    for (int v = 0; v < kVectors; ++v) {
      const Vector scale =
          widen_scales(job.panel_scales(panel + v / kPanelVectors) + v % kPanelVectors * kLanes);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r)
        hn::Store(scaled(whole[r][v], scale, job.scales[rows.begin + r]), Floats(),
                  carried + (r * kVectors + v) * kLanes);
    }
  }
};

// Magnitudes compare like their bits as integers, with infinity and NaN last. Infinity and NaN have
// no integer; the scale, which multiplies the entire group, propagates them.
HWY_INLINE WholeVector magnitude_bits(Vector x) { return hn::BitCast(Wholes(), hn::Abs(x)); }

HWY_INLINE float largest_of(WholeVector bits) {
  return std::bit_cast<float>(hn::GetLane(hn::MaxOfLanes(Wholes(), bits)));
}

// Rounds x * inverse to integers from -127 to 127. Floats from 2^23 to 2^24 are integers: adding
// 1.5 * 2^23 rounds to the nearest integer, which is then in the lowest bits. The integer that the
// bits of a NaN give is far outside the limits; clamping prevents an overflow of the sums.
HWY_INLINE WholeVector nearest_wholes(Vector x, Vector inverse) {
  constexpr float kRound = 12582912;
  const Vector rounded = hn::Add(hn::Mul(x, inverse), all(kRound));
  const WholeVector near =
      hn::Sub(hn::BitCast(Wholes(), rounded), hn::Set(Wholes(), std::bit_cast<int32_t>(kRound)));
  return hn::Min(hn::Max(near, hn::Set(Wholes(), -127)), hn::Set(Wholes(), 127));
}

// The factor that maps numbers of largest magnitude `most` to integers, and the scale of these.
HWY_INLINE float inverse_of(float most) { return most >= kLeastActivation ? 127 / most : 0; }
HWY_INLINE float scale_of(float most) { return most * (1.0f / 127); }

// Rounds a group of x to integers q (see packed_linear in kernels.h), sets `sums` to the sums of
// kSums equal parts of q, and returns the scale.
template <int64_t kGroup, int64_t kSums>
HWY_INLINE float round_group(const float* x, int8_t* q, int32_t (&sums)[kSums]) {
  constexpr int64_t kVectors = kGroup / kLanes;
  const hn::Rebind<int8_t, Floats> narrow_bytes;
  Vector part[kVectors];
  WholeVector largest = hn::Zero(Wholes());
#pragma GCC unroll 8
  for (int64_t v = 0; v < kVectors; ++v) {
    part[v] = hn::LoadU(Floats(), x + v * kLanes);
    largest = hn::Max(largest, magnitude_bits(part[v]));
  }
  const float most = largest_of(largest);
  constexpr int64_t kEach = kVectors / kSums;
#pragma GCC unroll 2
  for (int64_t s = 0; s < kSums; ++s) {
    WholeVector sum = hn::Zero(Wholes());
#pragma GCC unroll 8
    for (int64_t v = s * kEach; v < (s + 1) * kEach; ++v) {
      const WholeVector whole = nearest_wholes(part[v], all(inverse_of(most)));
      sum = hn::Add(sum, whole);
      hn::StoreU(hn::DemoteTo(narrow_bytes, whole), narrow_bytes, q + v * kLanes);
    }
    sums[s] = hn::GetLane(hn::SumOfLanes(Wholes(), sum));
  }
  return scale_of(most);
}

// Writes consecutive integers of a row to their slots in a tile of `rows` rows, four at a time.
template <int64_t kCount>
HWY_INLINE void put_fours(const int8_t* integers, int64_t rows, int8_t* to) {
#pragma GCC unroll 16
  for (int64_t i = 0; i < kCount; i += 4, to += 4 * rows) __builtin_memcpy(to, integers + i, 4);
}

// Rounds a whole row x [padded], whose padding is 0, to the integers of a row of a tile of `rows`
// rows, four after another; sets `sum` to their sum and returns the scale.
HWY_INLINE float round_whole_row(const float* x, int64_t padded, int64_t rows, int8_t* q,
                                 int32_t& sum) {
  const hn::Rebind<int8_t, Floats> narrow_bytes;
  WholeVector largest = hn::Zero(Wholes()), sums = hn::Zero(Wholes());
  for (int64_t k = 0; k < padded; k += kLanes)
    largest = hn::Max(largest, magnitude_bits(hn::LoadU(Floats(), x + k)));
  const float most = largest_of(largest);
  const Vector inverse = all(inverse_of(most));
  int8_t bytes[kLanes];
  for (int64_t k = 0; k < padded; k += kLanes) {
    const WholeVector whole = nearest_wholes(hn::LoadU(Floats(), x + k), inverse);
    sums = hn::Add(sums, whole);
    hn::StoreU(hn::DemoteTo(narrow_bytes, whole), narrow_bytes, bytes);
    put_fours<kLanes>(bytes, rows, q);
    q += kLanes * rows;
  }
  sum = hn::GetLane(hn::SumOfLanes(Wholes(), sums));
  return scale_of(most);
}

// Rounds the groups `groups` of row `row` of a tile of `rows` rows into the tile's q, scales and
// corrections (see PackedJob). x begins with the first of these groups; the last group of a row may
// be incomplete. `offset` is the offset of the weights.
template <int64_t kGroup>
HWY_INLINE void round_row(const float* x, Range groups, int64_t width, int32_t offset, int64_t row,
                          int64_t rows, int8_t* q, float* scales, int32_t* corrections) {
  float padded[kGroup];
  int8_t whole[kGroup];
  for (int64_t g = groups.begin; g < groups.end; ++g, x += kGroup) {
    const float* from = x;
    if (const int64_t rest = width - g * kGroup; rest < kGroup) {
      std::copy_n(from, rest, padded);
      std::fill(padded + rest, padded + kGroup, 0.0f);
      from = padded;
    }
    int32_t sum[1];
    scales[g * rows + row] = round_group<kGroup>(from, whole, sum);
    corrections[g * rows + row] = -offset * sum[0];
    put_fours<kGroup>(whole, rows, q + g * kGroup * rows + row * 4);
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
