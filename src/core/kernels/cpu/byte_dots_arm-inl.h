// Products of bytes on ARM64; included once per target.

#if defined(FOVEA_BYTE_DOTS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef FOVEA_BYTE_DOTS_INL_H_
#undef FOVEA_BYTE_DOTS_INL_H_
#else
#define FOVEA_BYTE_DOTS_INL_H_
#endif

#include <arm_neon.h>

#include "kernels/cpu/bytes-inl.h"
#include "kernels/layout/packed.h"

HWY_BEFORE_NAMESPACE();
namespace fovea::cpu::HWY_NAMESPACE {

// Adds each lane's four weights times four signed bytes q to 32-bit sums, exactly; the functions
// are those of byte_dots_x86-inl.h. int8 weights lose their offset. Two products fit into 16 bits,
// as |w| <= 128 and |q| <= 127.
template <WeightFormat kFormat>
struct PairsDot {
  static constexpr bool kSigned = kFormat == WeightFormat::int8;
  using Prepared = int8x16_t;
  static HWY_INLINE Prepared prepared(ByteVector bytes) {
    return vreinterpretq_s8_u8(kSigned ? veorq_u8(bytes.raw, vdupq_n_u8(128)) : bytes.raw);
  }
  static HWY_INLINE int32_t start(int32_t correction) { return kSigned ? 0 : correction; }
  static HWY_INLINE WholeVector add(WholeVector sum, Prepared w, WholeVector q) {
    const int8x16_t factors = vreinterpretq_s8_s32(q.raw);
    const int16x8_t low = vmull_s8(vget_low_s8(w), vget_low_s8(factors));
    const int16x8_t pairs = vpaddq_s16(low, vmull_high_s8(w, factors));
    return WholeVector(vpadalq_s16(sum.raw, pairs));
  }
};
template <WeightFormat kFormat>
using VnniDot = PairsDot<kFormat>;

template <class Use>
HWY_INLINE void with_byte_dot(const Use& use) {
  use.template operator()<PairsDot>();
}

}  // namespace fovea::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
