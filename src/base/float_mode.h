#pragma once

#include <cstdint>

namespace fovea {

// How a thread rounds and what it does with denormal numbers: the control bits of MXCSR (vectors
// and all arithmetic on float and double) and the x87 control word, which the C library's strtod
// obeys.
struct FloatModeBits {
  uint32_t sse = 0;
  uint16_t x87 = 0;
  bool operator==(const FloatModeBits&) const = default;
};

// Round to nearest even, keep denormal numbers, mask all exceptions: what a process starts with.
constexpr FloatModeBits kDefaultFloatMode{0x1f80, 0x037f};
// The same, but denormal inputs and results of vector arithmetic are zero (DAZ and FTZ).
constexpr FloatModeBits kFlushToZero{0x1f80 | 0x8040, 0x037f};

// Sets the calling thread's mode for the scope's life and then restores the one it found. Each
// public function begins with one, so that a caller's mode changes no result. Reading costs a few
// cycles; the mode is written only where it differs. The clobber keeps the compiler from moving
// loads and stores, and so the arithmetic between them, across the change.
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
    constexpr uint32_t kFlags = 0x3f;  // exceptions that have occurred, which are no mode
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
