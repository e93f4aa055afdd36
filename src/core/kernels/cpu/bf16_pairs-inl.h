// Words that hold two bf16, adjacent along k, and their products; included once per target.
//
// AVX512-BF16 multiplies words lane by lane: sum + upper * upper, then + lower * lower, each step
// rounded once; denormal numbers count as zero and denormal results become zero (Intel, Software
// Developer's Manual, VDPBF16PS). The earlier k is in the upper half, so that a chain of such
// products equals the chain of fused multiply-adds over ascending k that CPUs without the
// instruction compute.

#if defined(FOVEA_BF16_PAIRS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_BF16_PAIRS_INL_H_
#undef FOVEA_BF16_PAIRS_INL_H_
#else
#define FOVEA_BF16_PAIRS_INL_H_
#endif

#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

using Words = hn::RebindToUnsigned<Floats>;
using WordVector = hn::Vec<Words>;

HWY_INLINE Vector upper_of(WordVector pairs) {
  return hn::BitCast(Floats(), hn::And(pairs, hn::Set(Words(), 0xffff0000u)));
}
HWY_INLINE Vector lower_of(WordVector pairs) {
  return hn::BitCast(Floats(), hn::ShiftLeft<16>(pairs));
}
HWY_INLINE WordVector swap_halves(WordVector pairs) { return hn::RotateRight<16>(pairs); }

// Loads words of two adjacent numbers, the earlier in the upper half.
HWY_INLINE WordVector load_pairs(const bf16* from) {
  const hn::Repartition<uint16_t, Floats> halves;
  return swap_halves(hn::BitCast(Words(), hn::LoadU(halves, &from->bits)));
}

// The software model of the instruction. The caller's float mode must be kFlushToZero.
struct ModelPairs {
  static HWY_INLINE Vector multiply_add(WordVector a, WordVector b, Vector sum) {
    const Vector upper = hn::MulAdd(upper_of(a), upper_of(b), sum);
    return hn::MulAdd(lower_of(a), lower_of(b), upper);
  }
  static HWY_INLINE WordVector round(Vector first, Vector second) {
    const hn::Repartition<uint16_t, Floats> halves;
    const auto both = hn::Combine(halves, narrow_half(second), narrow_half(first));
    return swap_halves(hn::BitCast(Words(), both));
  }
};

#if HWY_ARCH_X86
struct NativePairs {
  static HWY_INLINE Vector multiply_add([[maybe_unused]] WordVector a,
                                        [[maybe_unused]] WordVector b, Vector sum) {
#if HWY_TARGET != HWY_AVX2  // CPUs without AVX-512 do not have this instruction
    __asm__("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
#endif
    return sum;
  }
  // Returns the numbers of two vectors, rounded to bf16: word i holds numbers 2i and 2i + 1.
  static HWY_INLINE WordVector round([[maybe_unused]] Vector first,
                                     [[maybe_unused]] Vector second) {
    WordVector pairs = hn::Zero(Words());
#if HWY_TARGET != HWY_AVX2
    __asm__("vcvtne2ps2bf16 %1, %2, %0" : "=v"(pairs.raw) : "v"(first.raw), "v"(second.raw));
#endif
    return swap_halves(pairs);
  }
};
#else
using NativePairs = ModelPairs;  // no level selects it
#endif

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
