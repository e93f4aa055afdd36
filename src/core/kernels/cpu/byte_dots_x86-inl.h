// Products of bytes on x86; included once per target.

#if defined(FOVEA_BYTE_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_BYTE_DOTS_INL_H_
#undef FOVEA_BYTE_DOTS_INL_H_
#else
#define FOVEA_BYTE_DOTS_INL_H_
#endif

#include <immintrin.h>

#include "kernels/cpu/bytes-inl.h"
#include "kernels/isa.h"
#include "kernels/layout/packed.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Add each lane's four weights (bytes with an offset) times four signed bytes q to 32-bit sums,
// exactly. start() returns the initial value of a sum; prepared() is called once for several rows.

// The VNNI instruction. Highway does not use it for these targets; packed_linear_with checks that
// the CPU has it.
template <WeightFormat>
struct VnniDot {
  using Prepared = ByteVector;
  static HWY_INLINE Prepared prepared(ByteVector bytes) { return bytes; }
  static HWY_INLINE int32_t start(int32_t correction) { return correction; }
  static HWY_INLINE WholeVector add(WholeVector sum, Prepared w, WholeVector q) {
#if HWY_TARGET == HWY_AVX2
    __asm__("%{vex%} vpdpbusd %2, %1, %0" : "+x"(sum.raw) : "x"(w.raw), "x"(q.raw));
#else
    __asm__("vpdpbusd %2, %1, %0" : "+v"(sum.raw) : "v"(w.raw), "v"(q.raw));
#endif
    return sum;
  }
#if HWY_TARGET != HWY_AVX2
  // The same for the four bytes at q.
  static HWY_INLINE WholeVector add_from(WholeVector sum, Prepared w, const int8_t* q) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0"
            : "+v"(sum.raw)
            : "v"(w.raw), "m"(*reinterpret_cast<const int8_t(*)[4]>(q)));
    return sum;
  }
#endif
};

#if HWY_TARGET == HWY_AVX2
// The byte instruction adds two products in 16 bits. |w| <= 128 and |q| <= 127 cannot overflow, but
// bytes up to 255 can, so the offset of int8 weights is removed and their sign is applied to q.
template <WeightFormat kFormat>
struct PairsDot {
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

// A model of the VNNI instruction: the even and the odd bytes, widened to 16 bits.
template <WeightFormat kFormat>
struct ModelVnniDot : VnniDot<kFormat> {
  static HWY_INLINE WholeVector add(WholeVector sum, ByteVector w, WholeVector q) {
    const __m256i even_w = _mm256_and_si256(w.raw, _mm256_set1_epi16(255));
    const __m256i odd_w = _mm256_srli_epi16(w.raw, 8), odd_q = _mm256_srai_epi16(q.raw, 8);
    const __m256i even_q = _mm256_srai_epi16(_mm256_slli_epi16(q.raw, 8), 8);
    const __m256i even = _mm256_madd_epi16(even_w, even_q), odd = _mm256_madd_epi16(odd_w, odd_q);
    return hn::Add(sum, WholeVector{_mm256_add_epi32(even, odd)});
  }
};
#endif

// Calls use() with the way to add products that the level selects.
template <class Use>
HWY_INLINE void with_byte_dot(const Use& use) {
#if HWY_TARGET == HWY_AVX2
  switch (byte_products()) {
    case ByteProducts::pairs: return use.template operator()<PairsDot>();
    case ByteProducts::vnni: return use.template operator()<VnniDot>();
    case ByteProducts::model_vnni: return use.template operator()<ModelVnniDot>();
  }
#else
  use.template operator()<VnniDot>();
#endif
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
