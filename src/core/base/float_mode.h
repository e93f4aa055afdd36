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

// Sets the calling thread's mode during its lifetime and then restores the previous one. Each
// public function begins with one, so that a caller's mode changes no result. Reading the mode
// costs a few cycles; it is written only if it differs. The "memory" clobber prevents the compiler
// from moving loads and stores, and so the arithmetic between them, across the change.
class FloatMode {
 public:
  explicit FloatMode(FloatModeBits wanted = kDefaultFloatMode) : found_(current()) {
    changed_ = found_ != wanted;
    if (changed_) set(wanted);
  }
  ~FloatMode() {
    if (changed_) set(found_);
  }
  FloatMode(const FloatMode&) = delete;
  FloatMode& operator=(const FloatMode&) = delete;

  static FloatModeBits current() {
    FloatModeBits bits;
    __asm__ volatile("stmxcsr %0" : "=m"(bits.sse)::"memory");
    __asm__ volatile("fnstcw %0" : "=m"(bits.x87)::"memory");
    constexpr uint32_t kFlags = 0x3f;  // flags of past exceptions, which are not part of the mode
    bits.sse &= ~kFlags;
    return bits;
  }

 private:
  static void set(FloatModeBits bits) {
    __asm__ volatile("ldmxcsr %0" ::"m"(bits.sse) : "memory");
    __asm__ volatile("fldcw %0" ::"m"(bits.x87) : "memory");
  }

  FloatModeBits found_;
  bool changed_;
};

}  // namespace fovea
