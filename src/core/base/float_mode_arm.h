#pragma once

#include <cstdint>

namespace fovea {

// A thread's rounding mode and treatment of denormal numbers: FPCR, for all arithmetic.
struct FloatModeBits {
  uint64_t fpcr = 0;
  bool operator==(const FloatModeBits&) const = default;
};

// Round to nearest even, keep denormal numbers, no exceptions: the default of a process.
constexpr FloatModeBits kDefaultFloatMode{0};
// Like the default, but denormal inputs and results are zero (FZ). A result counts as denormal if
// it is so before rounding; on x86, after rounding.
constexpr FloatModeBits kFlushToZero{1 << 24};
// Like the default, but rounds toward zero.
constexpr FloatModeBits kTowardZero{3 << 22};

inline FloatModeBits read_float_mode() {
  FloatModeBits bits;
  __asm__ volatile("mrs %0, fpcr" : "=r"(bits.fpcr)::"memory");
  return bits;
}

inline void write_float_mode(FloatModeBits bits) {
  __asm__ volatile("msr fpcr, %0" ::"r"(bits.fpcr) : "memory");
}

}  // namespace fovea
