#pragma once

#include <cstdint>

namespace fovea {

// A thread's rounding mode and treatment of denormal numbers: the control bits of MXCSR (all scalar
// and vector arithmetic on float and double) and the x87 control word, which affects the C
// library's strtod.
struct FloatModeBits {
  uint32_t sse = 0;
  uint16_t x87 = 0;
  bool operator==(const FloatModeBits&) const = default;
};

// Round to nearest even, keep denormal numbers, mask all exceptions: the default of a process.
constexpr FloatModeBits kDefaultFloatMode{0x1f80, 0x037f};
// Like the default, but denormal inputs and results of SSE and AVX arithmetic are zero (DAZ, FTZ).
constexpr FloatModeBits kFlushToZero{0x1f80 | 0x8040, 0x037f};
// Like the default, but rounds toward zero.
constexpr FloatModeBits kTowardZero{0x1f80 | 0x6000, 0x037f | 0x0c00};

inline FloatModeBits read_float_mode() {
  FloatModeBits bits;
  __asm__ volatile("stmxcsr %0" : "=m"(bits.sse)::"memory");
  __asm__ volatile("fnstcw %0" : "=m"(bits.x87)::"memory");
  constexpr uint32_t kFlags = 0x3f;  // flags of past exceptions, which are not part of the mode
  bits.sse &= ~kFlags;
  return bits;
}

inline void write_float_mode(FloatModeBits bits) {
  __asm__ volatile("ldmxcsr %0" ::"m"(bits.sse) : "memory");
  __asm__ volatile("fldcw %0" ::"m"(bits.x87) : "memory");
}

}  // namespace fovea
