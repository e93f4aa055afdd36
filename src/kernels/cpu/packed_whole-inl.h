// Tiles of a product with panels of int8 or int4 (kernels/packed.h); included once per target.

#if defined(FOVEA_PACKED_WHOLE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_PACKED_WHOLE_INL_H_
#undef FOVEA_PACKED_WHOLE_INL_H_
#else
#define FOVEA_PACKED_WHOLE_INL_H_
#endif

#include <immintrin.h>

#include "kernels/cpu/packed_float-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

using Wholes = hn::RebindToSigned<Floats>;
using Bytes = hn::Repartition<uint8_t, Floats>;
using WholeVector = hn::Vec<Wholes>;
using ByteVector = hn::Vec<Bytes>;

// Each lane's four weights, bytes with an offset, times four signed bytes q, added to 32-bit sums:
// exactly. `start` is what a sum begins with; `prepared` is made once for several rows.
#if HWY_TARGET == HWY_AVX2
// The instruction for bytes adds two products in 16 bits, which |w| <= 128 and |q| <= 127 cannot
// overflow, but bytes up to 255 can: int8 weights lose their offset and lend their sign to q.
template <WeightFormat kFormat>
struct Dot {
  static constexpr bool kSigned = kFormat == WeightFormat::int8;
  struct Prepared {
    __m256i magnitude, sign;
  };
  static HWY_INLINE Prepared prepared(ByteVector bytes) {
    if (!kSigned) return {bytes.raw, bytes.raw};
    const __m256i w = _mm256_xor_si256(bytes.raw, _mm256_set1_epi8(-128));
    return {_mm256_abs_epi8(w), w};
  }
  static HWY_INLINE int32_t start(int32_t correction) { return kSigned ? 0 : correction; }
  static HWY_INLINE WholeVector add(WholeVector sum, Prepared w, WholeVector q) {
    const __m256i signed_q = kSigned ? _mm256_sign_epi8(q.raw, w.sign) : q.raw;
    const __m256i pairs = _mm256_maddubs_epi16(w.magnitude, signed_q);
    return hn::Add(sum, WholeVector{_mm256_madd_epi16(pairs, _mm256_set1_epi16(1))});
  }
};
#else
// AVX512-VNNI, which Highway has no name for; packed_linear.cc asks whether the CPU has it.
template <WeightFormat>
struct Dot {
  using Prepared = ByteVector;
  static HWY_INLINE Prepared prepared(ByteVector bytes) { return bytes; }
  static HWY_INLINE int32_t start(int32_t correction) { return correction; }
  static HWY_INLINE WholeVector add(WholeVector sum, Prepared w, WholeVector q) {
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(q.raw));
    return sum;
  }
};
#endif

// Two kinds of sums, whole and float, share the registers.
struct WholeTiles {
  static constexpr int kMostRows = kLanes == 16 ? 6 : 2;
  static constexpr int panels(int rows) { return kLanes == 16 ? (rows <= 2 ? 4 : 2) : 1; }
  // 2 panels x 512 bytes x 16, and 6 rows of x, stay in L1.
  static constexpr int64_t kBlock = 512;
};

template <WeightFormat kFormat>
struct QuantizedTiles : WholeTiles {
  template <int kRows, int kVectors>
  using WholeSums = WholeVector[kRows][kVectors];

  // sums += weights of four k at `bytes`, times those of each row.
  template <int kRows, int kVectors>
  static HWY_INLINE void add(WholeSums<kRows, kVectors>& sums, const ByteVector (&bytes)[kVectors],
                             const int8_t* q, int64_t stride) {
    typename Dot<kFormat>::Prepared w[kVectors];
    for (int v = 0; v < kVectors; ++v) w[v] = Dot<kFormat>::prepared(bytes[v]);
    for (int r = 0; r < kRows; ++r) {
      int32_t four;
      __builtin_memcpy(&four, q + r * stride, 4);
      const WholeVector factor = hn::Set(Wholes(), four);
      for (int v = 0; v < kVectors; ++v) sums[r][v] = Dot<kFormat>::add(sums[r][v], w[v], factor);
    }
  }

  // One group's sums: `from` are its bytes in each vector's panel.
  template <int kRows, int kVectors>
  static HWY_INLINE void add_group(WholeSums<kRows, kVectors>& sums,
                                   const uint8_t* const (&from)[kVectors], const int8_t* q,
                                   const PackedJob& job) {
    constexpr bool kNibbles = kFormat == WeightFormat::int4;
    const int64_t lines = job.weight.group / (kNibbles ? 8 : 4);
    const Bytes bytes;
    for (int64_t line = 0; line < lines; ++line) {
      ByteVector w[kVectors], low[kVectors];
      for (int v = 0; v < kVectors; ++v) {
        w[v] = hn::Load(bytes, from[v] + line * kPanelOutputs * 4);
        if (kRows == 1) hwy::Prefetch(from[v] + line * kPanelOutputs * 4 + kPrefetchBytes);
        if (kNibbles) low[v] = hn::And(w[v], hn::Set(bytes, 15));
      }
      add<kRows, kVectors>(sums, kNibbles ? low : w, q + line * 4, job.stride);
      if (!kNibbles) continue;
      const hn::Repartition<uint16_t, Floats> pairs;
      for (int v = 0; v < kVectors; ++v) {
        const auto shifted = hn::BitCast(bytes, hn::ShiftRight<4>(hn::BitCast(pairs, w[v])));
        low[v] = hn::And(shifted, hn::Set(bytes, 15));
      }
      add<kRows, kVectors>(sums, low, q + job.weight.group / 2 + line * 4, job.stride);
    }
  }

  template <int kRows, int kPanels>
  static HWY_NOINLINE void multiply(const PackedJob& job, int64_t row, int64_t panel, Span k,
                                    float* carried) {
    constexpr int kVectors = kPanels * kPanelVectors;
    const int64_t group = job.weight.group;
    const int64_t group_bytes = group * kPanelOutputs * bits_of(kFormat) / 8;
    Sums<kRows, kVectors> sum;
    sum.load(carried, k.begin == 0);
    for (int64_t g = k.begin / group; g < (k.end + group - 1) / group; ++g) {
      const uint8_t* from[kVectors];
      WholeSums<kRows, kVectors> whole;
      for (int v = 0; v < kVectors; ++v) {
        from[v] =
            job.panel(panel + v / kPanelVectors) + g * group_bytes + v % kPanelVectors * kLanes * 4;
        for (int r = 0; r < kRows; ++r) {
          whole[r][v] =
              hn::Set(Wholes(), Dot<kFormat>::start(job.corrections[(row + r) * job.groups + g]));
        }
      }
      add_group<kRows, kVectors>(whole, from, job.bytes + row * job.stride + g * group, job);
      for (int v = 0; v < kVectors; ++v) {
        const uint16_t* scales = job.panel_scales(panel + v / kPanelVectors) + g * kPanelOutputs +
                                 v % kPanelVectors * kLanes;
        const Vector scale = widen_scales(scales);
        for (int r = 0; r < kRows; ++r) {
          const Vector both = hn::Mul(scale, all(job.scales[(row + r) * job.groups + g]));
          sum.at[r][v] = hn::MulAdd(both, hn::ConvertTo(Floats(), whole[r][v]), sum.at[r][v]);
        }
      }
    }
    sum.store(carried);
  }

  static HWY_INLINE Vector widen_scales(const uint16_t* scales) {
    const hn::Rebind<hwy::float16_t, Floats> halves;
    return hn::PromoteTo(Floats(),
                         hn::Load(halves, reinterpret_cast<const hwy::float16_t*>(scales)));
  }
};

// A row of x to whole numbers, group by group: see packed_linear in kernels.h. `offset` is that of
// the weights.
HWY_INLINE void quantize_row(const float* x, int64_t width, int64_t group, int32_t offset,
                             int8_t* q, float* scales, int32_t* corrections) {
  const hn::Rebind<int8_t, Floats> narrow_bytes;
  float padded[64];
  for (int64_t g = 0; g * group < width; ++g, q += group) {
    const float* from = x + g * group;
    if (const int64_t rest = width - g * group; rest < group) {
      std::copy_n(from, rest, padded);
      std::fill(padded + rest, padded + group, 0.0f);
      from = padded;
    }
    // What is not finite has no whole number: the scale, by which all is multiplied, carries it on.
    Vector largest = all(0), bad = all(0);
    for (int64_t i = 0; i < group; i += kLanes) {
      const Vector v = hn::LoadU(Floats(), from + i);
      largest = hn::Max(largest, hn::Abs(v));
      bad = hn::MulAdd(v, all(0), bad);
    }
    const float most = hn::GetLane(hn::MaxOfLanes(Floats(), largest));
    const float not_finite = hn::GetLane(hn::SumOfLanes(Floats(), bad));
    scales[g] = most * (1.0f / 127) + not_finite;
    const Vector inverse = all(most >= kLeastActivation ? 127 / most : 0);
    WholeVector sum = hn::Zero(Wholes());
    for (int64_t i = 0; i < group; i += kLanes) {
      const WholeVector whole = hn::NearestInt(hn::Mul(hn::LoadU(Floats(), from + i), inverse));
      const WholeVector least = hn::Set(Wholes(), -127), top = hn::Set(Wholes(), 127);
      const WholeVector bounded = hn::Min(hn::Max(whole, least), top);
      sum = hn::Add(sum, bounded);
      hn::StoreU(hn::DemoteTo(narrow_bytes, bounded), narrow_bytes, q + i);
    }
    corrections[g] = -offset * hn::GetLane(hn::SumOfLanes(Wholes(), sum));
  }
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
